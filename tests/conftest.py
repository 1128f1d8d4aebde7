"""What all tests share: the folder of data sets that are not embedded, and Hypothesis's habits."""

from __future__ import annotations

import os
import sys

if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):  # each process would compile the package anew,
    sys.dont_write_bytecode = False  # and pytest all tests
if "PYTEST_XDIST_WORKER" in os.environ:  # one process for each core: more threads would only wait
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy reads it once, when it is imported

import gc
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup: no test could press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("seraph", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("more", settings.get_profile("seraph"), max_examples=50)
settings.register_profile(
    "marathon",
    deadline=None,
    max_examples=1_000,
    derandomize=False,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "seraph"))

OPTIONAL = {
    **dict.fromkeys(("cvxopt", "moreau", "unopy", "pymanopt"), "race"),
    **{"marimo": "lecture", "sdpap": "sdpa", "sphinx": "docs"},
}
"""Packages that the extra `test` does not bring, and the extra that does."""


def reason_to_skip(error: BaseException | None) -> str | None:
    """Why a test cannot run here, if an optional package that is not installed made it fail."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:  # a chain of contexts may be a circle
        seen.add(id(error))
        package = str(getattr(error, "name", None)).partition(".")[0]
        if isinstance(error, ModuleNotFoundError) and package in OPTIONAL:
            return f"{package} is not installed: the extra `{OPTIONAL[package]}` brings it"
        error = error.__cause__ or error.__context__
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test that imports an optional package which is not installed."""
    try:
        return (yield)
    except Exception as error:
        if reason := reason_to_skip(error):
            pytest.skip(reason)
        raise


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--one-in 4` choose the first test of each file, the fifth, the ninth, ..."""
    parser.addoption("--one-in", type=int, default=1, help="run only every k-th test of each file")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep that sample of what the marks have chosen, what takes longest before the rest."""
    seen: Counter[Path] = Counter()
    chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        chosen[seen[item.path] % config.getoption("--one-in") == 0].append(item)
        seen[item.path] += 1
    config.hook.pytest_deselected(items=chosen[False])
    items[:] = sorted(chosen[True], key=lambda item: item.get_closest_marker("first") is None)


def pytest_collection_finish() -> None:
    """Tell the garbage collector to leave alone what will last: it would go through all of it."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let it look at everything again."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """SERAPH_CVX_DATA, else shared/data next to the repository, else the test is skipped."""
    named = os.environ.get("SERAPH_CVX_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not (folder / "ionosphere.csv").is_file():
        pytest.skip(f"no ionosphere.csv in {folder.name}: name its folder by SERAPH_CVX_DATA")
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of pyproject.toml."""
    return REPOSITORY


@pytest.fixture(scope="session")
def kept_server() -> Iterator[Any]:
    """A fork server with all that races import."""
    from seraph_cvx.processes.isolation import ONE_THREAD, ForkServer
    from seraph_cvx.race.compare import PRELOAD

    with ForkServer(PRELOAD, ONE_THREAD) as server:
        yield server


@pytest.fixture
def one_race_server(kept_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Races share a fork server, which a race ends otherwise, with all that it imported."""
    from seraph_cvx.race import compare

    monkeypatch.setattr(compare, "ForkServer", lambda *_: nullcontext(kept_server))


@pytest.fixture
def canonicalized(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every problem whose expression tree CVXPY canonicalizes from now on."""
    from cvxpy.reductions.dcp2cone.dcp2cone import Dcp2Cone

    problems: list[object] = []
    original = Dcp2Cone.apply

    def apply(self: Dcp2Cone, problem: object) -> object:
        problems.append(problem)
        return original(self, problem)

    monkeypatch.setattr(Dcp2Cone, "apply", apply)
    return problems


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=flags)
        yield opened
        opened.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def table(folder: Path) -> Path:
    """The file small.csv: six points in two classes, two of them without a label."""
    from command_line import TABLE

    path = folder / "small.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def flowers(folder: Path) -> tuple[Any, Any]:
    """Iris with 20 labels of 150 as flowers.csv: the points as a frame, and the labels."""
    import numpy as np
    import pandas as pd

    from seraph_cvx.datasets import load

    X, y = load("iris")
    points = pd.DataFrame(X, columns=["sepal length", "sw", "pl", "pw"])
    kinds = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    known = np.isin(np.arange(150), np.random.default_rng(0).permutation(150)[:20])
    labels = np.where(known, kinds, None)
    points.assign(species=labels).to_csv("flowers.csv", index=False)
    return points, labels


@pytest.fixture
def no_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matplotlib cannot be imported."""
    for name in [*sys.modules]:
        if name.startswith(("seraph_cvx.plots", "matplotlib.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)

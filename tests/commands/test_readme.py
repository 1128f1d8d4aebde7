"""The code of README and guide runs and prints what stands below it."""

from __future__ import annotations

import contextlib
import io
import re

import numpy as np
import pandas as pd
import pytest
from command_line import run
from sklearn.datasets import load_iris

from seraph_cvx import load_model, penalties

GUIDE = ("certify-any-problem", "distance-features", "does-it-help", "model-your-own", "pipelines")
GUIDE += ("duality-gap", "race-your-own", "solvers", "supervision", "weights")
START = ("teacher", "solver-author", "data-scientist", "researcher")
PAGES = ["README.md", *(f"examples/guide/{name}.md" for name in GUIDE)]
PAGES += [
    *(f"examples/start/{name}.md" for name in START),
    "examples/cheat-sheet.md",
    "examples/index.md",
]
COSTLY = ("examples/guide/model-your-own.md", "examples/guide/race-your-own.md")
"""They solve many conic problems: slow evidence."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in COSTLY)) for n in PAGES],
)
@pytest.mark.once  # solvers of other versions have other answers
@pytest.mark.usefixtures("folder", "one_race_server")
def test_every_python_block_prints_what_stands_below_it(repository, name):
    """A block of code without a text below it prints nothing."""
    text = (repository / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert len(blocks) == text.count("```python") > 0
    scope = {"__name__": "page"}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), scope)
        assert printed.getvalue().strip() == output.strip()


def test_the_code_of_every_page_of_the_guide_is_run(repository):
    pages = (repository / "examples" / "guide").glob("*.md")
    with_code = {page.stem for page in pages if "```python" in page.read_text(encoding="utf-8")}
    assert with_code == {*GUIDE}


def test_the_readmes_commands_label_learn_apply_save_and_load(repository, tmp_path, monkeypatch):
    """A table in which most labels are blank is learned; the metric is applied to new rows."""
    readme = (repository / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^seraph-cvx (.+)$", readme, re.M)
    assert [command.split()[0] for command in commands] == ["fit", "apply"]
    monkeypatch.chdir(tmp_path)
    flowers = load_iris(as_frame=True)
    kinds = "species " + flowers.target.astype(str)
    known = kinds.where(flowers.target.index % 12 == 0)
    flowers.data.assign(species=known)[::2].to_csv("table.csv", index=False)
    flowers.data[1::2].to_csv("new.csv", index=False)
    for command in commands:
        done = run(command)
        assert done.exit_code == 0, done.output
    rows = pd.read_csv("out.csv")
    assert np.mean(rows["predicted"].to_numpy() == kinds[1::2].to_numpy()) > 0.85
    transformed = load_model("model.npz").transform(pd.read_csv("new.csv"))
    assert np.allclose(transformed, rows.drop(columns="predicted"), rtol=1e-12, atol=1e-12)


def test_the_guide_to_modeling_has_every_block_in_its_table(repository):
    page = (repository / "examples" / "guide" / "model-your-own.md").read_text(encoding="utf-8")
    plain, blocks = penalties.Penalty, {}
    for name in penalties.__all__:
        block = getattr(penalties, name)
        if isinstance(block, type) and issubclass(block, plain) and block is not plain:
            is_solvable = block.is_smooth or block.prox is not plain.prox
            blocks[name] = "newton, conic" if is_solvable else "conic"
    assert dict(re.findall(r"^\| `(\w+)\(.* \| (.+) \|$", page, re.M)) == blocks


def test_ci_runs_exactly_the_readmes_commands(repository):
    readme = (repository / "README.md").read_text(encoding="utf-8")
    script = (repository / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for line in readme.splitlines() if ".venv/bin/" in line]
    assert len(commands) == 2
    for command in commands:
        assert command in script.splitlines()


def test_the_index_of_the_guide_has_every_page(repository):
    folder = repository / "examples" / "guide"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for page in folder.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in index, page.name

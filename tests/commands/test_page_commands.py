"""Every shell command of README, guide and the other pages is one that there is, and works.

Commands of `seraph-cvx` run in this process, races with one solver on one small instance. Programs
of examples/reproduction, which take minutes or hours, are started up to the point where all
their arguments are read; what they do then has its tests in tests/experiments.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import typer.main
from command_line import run
from sklearn.datasets import load_iris

from seraph_cvx import cli
from seraph_cvx.cli import explore
from seraph_cvx.race import compare

pytestmark = pytest.mark.once

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / ".github" / "CONTRIBUTING.md"]
PAGES += sorted((REPOSITORY / "examples").rglob("*.md"))
LONG = (
    *("examples/cheat-sheet.md", "examples/guide/command-line.md"),
    "examples/solver-comparison/README.md",
)
"""Pages whose commands take seconds."""

PORTFOLIO = """import cvxpy as cp
x = cp.Variable(2, name="x")
problem = cp.Problem(cp.Maximize(x[0]), [cp.sum(x) == 1, x >= 0])
"""


def lines_of(page):
    """The commands of its blocks for a shell, each with the text that it reads, in their order."""
    text = page.read_text(encoding="utf-8").replace(" \\\n", " ")
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line, _, text in re.findall(r"^(.+?)(?: <<'(\w+)'\n(.*?)\n\2)?$", block, re.M | re.S):
            for command in line.split(" && "):
                yield shlex.split(command, comments=True), text


def name_of(page):
    return str(page.relative_to(REPOSITORY))


def with_commands():
    for page in PAGES:
        if [*lines_of(page)]:
            marks = [pytest.mark.slow] if name_of(page) in LONG else []
            yield pytest.param(page, id=name_of(page), marks=marks)


@pytest.fixture
def workplace(folder, monkeypatch, one_race_server):
    """A folder with the files that pages speak of, where no command takes long."""
    flowers = load_iris(as_frame=True)
    kinds = ("species " + flowers.target.astype(str)).where(flowers.target.index % 12 == 0)
    table = flowers.data.assign(species=kinds)[::2]
    for name in ("table", "t", "points", "flowers"):
        table.to_csv(f"{name}.csv", index=False)
    flowers.data[1::2].to_csv("new.csv", index=False)
    for name in ("portfolio.py", "file.py"):
        Path(name).write_text(PORTFOLIO)
    (folder / "FOLDER").mkdir()
    raced = compare.compare_solvers

    def race_of_one(given, solvers, **more):
        is_problem = not isinstance(given, (str, list))
        given = given if is_problem else "iris-n20-standard-hyper-w1-s0"
        chosen = ["CLARABEL"] if is_problem else ["newton"]
        return raced(given, chosen, **more | {"tols": [1e-4], "repeats": 1})

    monkeypatch.setattr(compare, "compare_solvers", race_of_one)
    monkeypatch.setattr(explore.subprocess, "run", started)
    return folder


def started(command, **_):
    """Marimo is given a notebook that is there."""
    assert Path(command[-1]).is_file()
    return subprocess.CompletedProcess(command, 0)


@pytest.mark.parametrize("page", [*with_commands()])
def test_the_commands_of_a_page_work(page, workplace):
    for words, text in lines_of(page):
        program, *arguments = words
        program = Path(program).name
        PROGRAMS[program](arguments, text, page)


def seraph_cvx(arguments, *_):
    if arguments[0] == "check-exercise":  # of a solution that is not begun
        kind, number = re.fullmatch(r"(set)?(\d+)", arguments[1]).groups()
        pattern = f"{'set' if kind else 'exercise'}_{number}_*.py"
        (exercise,) = (REPOSITORY / "examples" / "exercises").glob(pattern)
        shutil.copy(exercise, arguments[2])
    if arguments[0] == "explore":
        pytest.importorskip("marimo", reason="marimo is not installed")
    if "--redraw" in arguments:
        shutil.copytree(
            REPOSITORY / "examples" / "solver-comparison" / "small", "small", dirs_exist_ok=True
        )
    needs_file = arguments[0] not in ("demo", "explain", "verify")
    done = (run if needs_file else run_once)(shlex.join(arguments))
    assert done.exit_code in (0, 1), done.output


run_once = cache(run)


def python(arguments, text, page):
    first, *others = arguments
    if first == "-":
        exec(compile(text, page.name, "exec"), {})
    elif first == "-m":
        module, *others = others
        if module == "sphinx":
            chosen = import_module("sphinx.cmd.build").get_parser().parse_args(others)
            assert (REPOSITORY / chosen.sourcedir / "conf.py").is_file()
        else:
            assert module == "venv"
    elif "reproduction" in first:
        app = import_module(Path(first).stem).app
        typer.main.get_command(app).make_context(first, others)
    else:
        file = REPOSITORY / first if "/" in first else page.parent / first
        assert file.is_file()
        if "lecture" not in file.parts:  # chapters run where the site is built
            not_begun = contextlib.suppress(NotImplementedError)  # of an exercise
            with contextlib.redirect_stdout(io.StringIO()), not_begun:
                runpy.run_path(str(file), run_name="__main__")


def pip(arguments, *_):
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    extras = ",".join(re.findall(r"\[(.+)\]", " ".join(arguments))).split(",")
    assert set(extras) <= set(settings["project"]["optional-dependencies"])


def marimo(arguments, *_):
    pytest.importorskip("marimo", reason="marimo is not installed")
    import_module("marimo._cli.cli").main.make_context("marimo", [*arguments])
    assert (REPOSITORY / arguments[1]).is_file()


def run_by_ci(words, *_):
    """Pytest, ruff and mypy are what CI runs; benchopt has tests/experiments/test_benchopt.py."""
    assert all((REPOSITORY / word).is_file() for word in words if word.startswith("tests/"))


PROGRAMS = {"seraph-cvx": seraph_cvx, "python": python, "python3": python, "pip": pip}
PROGRAMS |= {"marimo": marimo}
PROGRAMS |= dict.fromkeys(("pytest", "ruff", "mypy", "benchopt"), run_by_ci)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_options_that_a_page_names_are_there(page):
    """Of commands inside of sentences, with names of files that there need not be."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for line in re.findall(r"`seraph-cvx ([a-z][^`]*)`", text):
        name, *arguments = shlex.split(line)
        command = typer.main.get_command(cli.app).commands[name]
        options = {flag for each in command.params for flag in (*each.opts, *each.secondary_opts)}
        assert {word for word in arguments if word.startswith("--")} <= options | {"--help"}

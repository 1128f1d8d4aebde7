"""Evidence: the package as it would be uploaded is whole, typed, and can be read on an index."""

from __future__ import annotations

import re
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from built_package import build, install, run

import seraph_cvx

pytestmark = pytest.mark.slow

RELATIVE = re.compile(r"\]\((?!https://|#)[^)]*\)|(?:src|href)=[\"'](?!https://|#)")
"""A link or a picture of Markdown or HTML that an index cannot show."""

FROM_SDIST = [
    "tests/test_public_names.py",
    "tests/commands/test_readme.py",
    "--deselect=tests/commands/test_readme.py::test_every_python_block_prints_what_stands_below_it",
    "tests/commands/test_exercises.py::test_only_public_names_are_used",
    "tests/estimators/test_saving.py",
]
"""Tests that read the files of README, guide, gallery, exercises and CI, and one that computes:
five seconds of 200. `.ci/package` runs all fast tests from there."""

USER_FILE = """
import numpy as np
from seraph_cvx import SERAPH, MStepObjective, PairSet, certify, solve_m_step

X = np.array([[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0]])
pairs = PairSet.from_labels(X, [0, 0, 1, 1])
solution = solve_m_step(MStepObjective(pairs, trace_weight=1.0))
gap: float = solution.relative_gap
if solution.metric is not None:
    reveal_type(certify(MStepObjective(pairs), solution.metric).dual_value)
reveal_type(SERAPH(trace_weight=0.5).fit(X, [0, 0, 1, 1]))
SERAPH(trace_weigth=0.5)
"""


@pytest.fixture(scope="module")
def built(repository, tmp_path_factory):
    return build(repository, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def information(built):
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def files_below(folder, *parts):
    """All files of these parts of a folder, but for what Python compiles."""
    found = [path for part in parts for path in (folder / part).rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix() for path in found if path.suffix != ".pyc"}


def workflow(repository, name):
    """The text of a workflow, and what it says; YAML 1.1 reads its key `on` as true."""
    text = (repository / ".github" / "workflows" / name).read_text(encoding="utf-8")
    return text, yaml.safe_load(text)


def commands(job):
    return "\n".join(step.get("run", "") for step in job["steps"]).splitlines()


def actions(job):
    return [step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step]


MAY_WRITE = {
    "docs.yml": {("deploy", "pages", "github-pages"), ("deploy", "id-token", "github-pages")},
    "release.yml": {("testpypi", "id-token", "testpypi"), ("pypi", "id-token", "pypi")},
}
"""The jobs of a workflow that may write, what they may write, and their environments."""


@pytest.mark.parametrize("name", MAY_WRITE)
def test_a_workflow_says_that_it_was_not_run_and_may_do_no_more_than_it_has_to(repository, name):
    text, said = workflow(repository, name)
    assert text.startswith("# This workflow has not been run yet")
    assert said["permissions"] == {}  # each job has its own
    writes = {
        (job, scope, body.get("environment", {}).get("name"))
        for job, body in said["jobs"].items()
        for scope, access in body["permissions"].items()
        if access == "write"
    }
    assert writes == MAY_WRITE[name]
    assert "secrets." not in text
    versions = re.findall(r"uses: \S+@(\S+)", text)
    assert versions
    assert all(re.fullmatch(r"(release/)?v\d+", version) for version in versions)


def test_a_tag_uploads_the_files_that_were_tested(repository):
    _, said = workflow(repository, "release.yml")
    jobs = said["jobs"]
    assert said[True] == {"push": {"tags": ["v*"]}, "workflow_dispatch": None}
    assert "python -m build" in commands(jobs["build"])
    assert "actions/checkout" not in actions(jobs["test"])  # it has the built files alone
    assert jobs["test"]["needs"] == "build"
    for name, event in (("pypi", "push"), ("testpypi", "workflow_dispatch")):
        assert jobs[name]["needs"] == "test"
        assert jobs[name]["if"] == f"github.event_name == '{event}'"
        publish = ["actions/download-artifact", "pypa/gh-action-pypi-publish"]
        assert actions(jobs[name]) == publish


def test_the_version_is_the_same_everywhere(repository):
    folder = repository / ".github"
    version = seraph_cvx.__version__
    cited = yaml.safe_load((folder / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == version
    assert "preferred-citation" not in cited  # "Cite this repository" cites the package
    assert cited["authors"]
    assert cited["date-released"]
    assert cited["references"][0]["year"] == 2012
    changes = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.M)[1] == version


def test_both_files_are_whole(built, repository):
    """The wheel has the package and a notebook; the source distribution what its tests read too."""
    package = files_below(repository, "seraph_cvx")
    with zipfile.ZipFile(built.wheel) as archive:
        inside = set(archive.namelist())
    assert {name for name in inside if "dist-info" not in name} == package | {
        "seraph_cvx/explorer.py"
    }
    assert "seraph_cvx/py.typed" in package
    assert any(name.endswith("licenses/LICENSE") for name in inside)
    unpacked = files_below(built.unpacked, ".")
    assert package | {"LICENSE", "README.md", "pyproject.toml", ".ci/run"} <= unpacked
    kept = {name for name in unpacked if name.startswith(("tests/", "examples/", ".github/"))}
    if (repository / ".git").exists():
        listed = run("git", "ls-files", "tests", "examples", ".github", cwd=repository)
        assert set(listed.splitlines()) <= kept


def test_the_metadata_are_valid(built, information):
    said = run(
        sys.executable, "-m", "twine", "check", "--strict", built.wheel, built.sdist, cwd="."
    )
    assert said.count("PASSED") == 2
    assert information["Name"] == "seraph-cvx"
    assert information.get_all("Project-URL") == ["Paper, https://arxiv.org/abs/1206.4614"]


def test_the_description_has_no_link_or_picture_that_an_index_cannot_show(built, information):
    text = information.get_payload()
    assert information["Description-Content-Type"] == "text/markdown"
    assert text.startswith("# seraph_cvx")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert RELATIVE.findall(prose) == []
    named = re.findall(r"\(`([\w./-]+\.\w+)`\)", prose)
    assert "examples/guide/README.md" in named
    assert [path for path in named if not (built.unpacked / path).exists()] == []


def test_a_part_of_the_fast_tests_passes_from_the_source_distribution(built):
    where = run(
        sys.executable, "-c", "import seraph_cvx; print(seraph_cvx.__file__)", cwd=built.unpacked
    )
    assert Path(where.strip()).is_relative_to(built.unpacked)
    said = run(sys.executable, "-m", "pytest", "-n", "0", "-q", *FROM_SDIST, cwd=built.unpacked)
    assert re.search(r"\d\d passed", said), said


FIND_IMPORTS = r"""
import ast, importlib.util, pathlib, re, sys
package, *pages = map(pathlib.Path, sys.argv[1:])
texts = {path.name: path.read_text(encoding="utf-8") for path in pages}
codes = [code for t in texts.values() for code in re.findall(r"```python\n(.*?)```", t, re.S)]
codes += [path.read_text(encoding="utf-8") for path in package.rglob("*.py")]
nodes = [node for code in codes for node in ast.walk(ast.parse(code))]
names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
roots = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)
print(*sorted(root for root in roots if importlib.util.find_spec(root) is None))
scope = {"__name__": "page"}
for code in re.findall(r"```python\n(.*?)```", texts["README.md"], re.S):
    exec(compile(code, "README.md", "exec"), scope)
"""
"""Prints what package and pages import, in functions too, and is not there; runs the README."""

OTHERS = {"coptpy", "cupy", "torch", "triton"}
"""What the package uses where it is there, and no extra brings."""


def test_the_wheel_and_all_have_the_imports_of_package_and_guide_and_their_types_reach_a_user(
    built, repository, tmp_path
):
    """In an environment with the wheel, what its extra [all] brings, and nothing else."""
    environment = tmp_path / "environment"
    environment.mkdir()
    python = install(built.wheel, environment)
    where = run(python, "-c", "import seraph_cvx; print(seraph_cvx.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(environment)
    said = run(python.with_name("seraph-cvx"), "demo", cwd=tmp_path)
    assert "Certificate of the last M-step" in said
    assert (tmp_path / "seraph-cvx-demo.png").stat().st_size > 10_000
    pages = [repository / "README.md", *(repository / "examples" / "guide").glob("[!R]*.md")]
    missing = run(python, "-c", FIND_IMPORTS, Path(where).parent, *pages, cwd=tmp_path)
    assert set(missing.splitlines()[0].split()) <= OTHERS
    for name in ("pytest", "hypothesis", "playwright"):  # what the tests alone need is not there
        run(python, "-c", f"import {name}", cwd=tmp_path, fails=True)
    (tmp_path / "user.py").write_text(USER_FILE, encoding="utf-8")
    settings = ("--config-file", repository / "pyproject.toml", "--python-executable", python)
    said = run(sys.executable, "-m", "mypy", *settings, "user.py", cwd=tmp_path, fails=True)
    assert 'Revealed type is "float"' in said.replace("builtins.", "")
    assert "seraph_cvx.estimators.seraph.SERAPH" in said
    (mistake,) = [line for line in said.splitlines() if ": error:" in line]
    assert "trace_weigth" in mistake  # the only error is the one that was planted

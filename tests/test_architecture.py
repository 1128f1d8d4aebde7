"""Evidence: the rooms of the package, by parsing its imports; what importing it brings in."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import seraph_cvx

pytestmark = pytest.mark.once

PACKAGE = Path(seraph_cvx.__file__).parent

FOLDERS = [
    "paper",
    "proof",
    "numerics",
    "display",
    "processes",
    "datasets",
    "pairs",
    "engine",
    "penalties",
    "model",
    "certificate",
    "solvers",
    "m_step",
    "fit",
    "estimators",
    "theory",
    "race",
    "__init__",
    "plots",
    "cli",
    "__main__",
]
"""The order of the data's way: a folder imports only from folders above it in this list.

`__init__` is the package's front door; `datasets`, `__init__` and `__main__` are files.
"""

MAY_IMPORT = {
    "cvxpy": (
        *("penalties", "m_step", "theory", "race"),
        *(f"proof.{file}" for file in ("program", "point", "certify", "files", "file_lines")),
        *(f"proof.{file}" for file in ("conic_files", "linear_files", "conflict", "registration")),
        *(f"proof.{file}" for file in ("enclosure", "problem_certificate", "start")),
        "cli.problems",
    ),
    "matplotlib": ("plots",),
    "jinja2": ("display.page",),
    "latex2mathml": ("display.mathml",),
    "typer": ("cli",),
    "rich": ("cli", "display.progress_line"),
    "marimo": (),
    "torch": ("numerics.cuda.pair_passes", "numerics.cuda.bounds"),
    "triton": (
        "numerics.cuda.pair_passes",
        "numerics.cuda.pair_kernels",
        "numerics.cuda.bounds",
    ),
    "flint": ("proof",),
    "highspy": ("proof",),
    "pandas": ("display.result_table", "cli.tables"),
    "array_api_compat": ("numerics.arrays",),
    "pymanopt": ("race.factor_solvers",),
}
MATHEMATICS = FOLDERS[FOLDERS.index("pairs") : FOLDERS.index("estimators")]
"""The folders that compute: what is shown of their results is drawn in display/."""

MAY_PRINT = ("cli",)

MAY_CATCH_ALL = (
    "cli.messages",
    "cli.exercises",
    "cli.problems",
    "estimators.saving",
)
"""The command answers every error in words, checks the code of students and runs files of users;
files of models come from whomever."""


FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
"""Every module: seraph_cvx, seraph_cvx.paper, seraph_cvx.m_step.solve, ..."""


@cache
def nodes_of(module):
    """All nodes of its tree, the whole file first; parsed by who asks, not by who collects."""
    gc.disable()  # a tree has no garbage, and to look for some takes half of the time
    try:
        return list(ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))))
    finally:
        gc.enable()


def folder_of(module):
    """seraph_cvx.theory.model_claims -> theory"""
    return (*module.split("."), "__init__")[1]


@cache
def imports(module):
    """The modules that `module` imports, of this package or not, anywhere in it, however late."""
    is_folder = FILES[module].name == "__init__.py"
    package, found = module if is_folder else module.rpartition(".")[0], set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            longer = [f"{base}.{alias.name}" for alias in node.names]
            found |= {name if name in FILES else base for name in longer}
    return found - {module}


def inner_imports(module):
    return {target for target in imports(module) if target.partition(".")[0] == "seraph_cvx"}


def test_architecture_the_parser_sees_the_imports():
    """Known imports of each kind are found, or every test below would say nothing."""
    for module, target in (
        ("model.m_step_objective", "seraph_cvx.engine.pair_sums"),
        ("solvers.solution", "seraph_cvx.certificate"),
        ("m_step.solve", "seraph_cvx.m_step.conic"),  # inside a function
        ("m_step.statement", "cvxpy"),
    ):
        assert target in imports(f"seraph_cvx.{module}")
    assert "seraph_cvx.estimators.seraph" in imports("seraph_cvx")  # for the type checker
    assert all(target in FILES for module in FILES for target in inner_imports(module))


def graph_of_imports(depth):
    """What each module imports of this package; those in deeper folders count as their folder."""

    def part(module):
        return ".".join(module.split(".")[:depth])

    graph = {part(module): set() for module in FILES}
    for module in FILES:
        graph[part(module)] |= {part(target) for target in inner_imports(module)} - {part(module)}
    return graph


@pytest.mark.parametrize("depth", [3, 4])
def test_architecture_no_modules_import_each_other_in_a_circle(depth):
    graph = graph_of_imports(depth)
    TopologicalSorter(graph).prepare()
    graph["seraph_cvx.theory.claim"].add("seraph_cvx.theory.verification")
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def test_architecture_a_file_imports_only_from_folders_above_its_own():
    for module in FILES:
        for target in inner_imports(module):
            own, imported = FOLDERS.index(folder_of(module)), FOLDERS.index(folder_of(target))
            assert imported <= own, f"{module} imports {target}, whose folder is below"


def modules_drawn_at_once(module):
    """The modules of display/ that a file imports as it is imported itself."""
    late = (ast.FunctionDef, ast.AsyncFunctionDef, ast.If)  # `if TYPE_CHECKING:` never runs
    waiting = list(nodes_of(module)[0].body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ImportFrom) and "display" in (node.module or "").split("."):
            yield node.module
        if not isinstance(node, late):
            waiting += ast.iter_child_nodes(node)


def test_architecture_mathematics_does_not_know_html():
    drawn = {module: list(modules_drawn_at_once(module)) for module in FILES}
    assert drawn["seraph_cvx.theory.page"]  # or this test would say nothing
    for module in FILES:
        assert folder_of(module) not in MATHEMATICS or not drawn[module], (
            f"{module} imports {drawn[module]}: let _repr_html_ import it"
        )


def test_architecture_a_heavy_library_has_its_rooms():
    for module in FILES:
        rooms = {module.removeprefix("seraph_cvx."), folder_of(module)}
        for library in {name.partition(".")[0] for name in imports(module)} & set(MAY_IMPORT):
            assert rooms & set(MAY_IMPORT[library]), f"{module} imports {library}"


def test_architecture_nothing_is_printed_swallowed_or_asserted():
    for module in FILES:
        for node in nodes_of(module):
            where = f"{module}, line {getattr(node, 'lineno', 0)}"
            assert not isinstance(node, ast.Assert), f"{where}: raise an exception, never assert"
            if isinstance(node, ast.ExceptHandler):
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                for kind in caught:
                    assert kind is not None, f"{where}: a bare except"
                    broad = isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")
                    assert not broad or module.removeprefix("seraph_cvx.") in MAY_CATCH_ALL, (
                        f"{where}: except {kind.id}"
                    )
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print" or folder_of(module) in MAY_PRINT, f"{where}: print"


def run_python(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAVY = {
    *("sklearn", "pandas", "cvxpy", "matplotlib", "joblib", "dask", "distributed", "torch"),
    *("flint", "marimo", "IPython", "typer", "rich"),
    *("scipy.linalg", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats"),
}
"""What `import seraph_cvx` must not wait for; a submodule never comes without its package."""

HELP = """
import sys
from seraph_cvx.__main__ import main
sys.argv = ["seraph-cvx", "--help"]
try:
    main()
finally:
    print("help", *sys.modules)
"""


def test_architecture_help_is_light():
    """As little comes with --help as with the front door, but for what prints it."""
    assert set(run_python(HELP).split()) & HEAVY == {"typer", "rich"}


def test_architecture_a_warning_names_the_line_that_called_the_function_that_warns():
    """Nobody counts stack levels: what an inner function found goes back to the public one.

    A public method that takes a `stacklevel`, as `warnings.warn` does, may pass it on.
    """
    for module in FILES:
        for node in nodes_of(module):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "stacklevel":
                    where = f"{module}, line {node.lineno}"
                    if ast.unparse(keyword.value) == "stacklevel + 1":
                        continue
                    assert isinstance(keyword.value, ast.Constant), (
                        f"{where}: a counted stack level"
                    )
                    assert keyword.value.value == 2, f"{where}: stacklevel={keyword.value.value}"


STEPS = """
import sys
import seraph_cvx
print("door", *sys.modules)

import scipy.linalg
print("scipy", *sys.modules)

from seraph_cvx import SERAPH
X = [[0.0, 1.0], [0.1, 9.0], [2.0, 2.0], [2.1, 8.0], [0.2, 5.0], [1.9, 4.0]]
SERAPH().fit(X, [0, 0, 1, 1, -1, -1])
SERAPH(algorithm="direct").fit(X, [0, 0, 1, 1, -1, -1])
print("SERAPH", *sys.modules)

from seraph_cvx import state_m_step
print("statement", *sys.modules)
"""

UNASKED = {
    *("cvxpy", "matplotlib", "typer", "rich"),
    *("torch", "triton", "distributed", "dask", "cupy"),
}


def test_architecture_nobody_imports_what_was_not_asked_for():
    """What one process has imported after each of its steps."""
    lines = run_python(STEPS).splitlines()
    after = {step: set(modules) for step, *modules in map(str.split, lines)}
    assert not after["door"] & HEAVY
    assert "scipy.linalg" in after["scipy"] & HEAVY  # or this test would say nothing
    assert not after["SERAPH"] & UNASKED
    assert "cvxpy" in after["statement"]


def test_architecture_a_name_that_the_package_does_not_have_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'SERAPHIM'"):
        seraph_cvx.SERAPHIM  # noqa: B018


def test_architecture_top_level_holds_nothing_else(repository):
    """Files that git ignores are nobody's."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listing.stdout.splitlines()}
    allowed = {"pyproject.toml", "README.md", "LICENSE", "seraph_cvx", "tests", "examples"}
    assert {name for name in top if not name.startswith(".")} <= allowed
    assert "seraph_cvx" in top

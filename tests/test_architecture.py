"""Evidence: the rooms of the package, by parsing its imports; what importing it brings in."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

import seraph_cvx

PACKAGE = Path(seraph_cvx.__file__).parent

FOLDERS = [
    "paper",
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
    "baselines",
    "theory",
    "race",
    "__init__",
    "plots",
    "explorer",
    "cli",
    "__main__",
]
"""The order of the data's way: a folder imports only from folders above it in this list.

`__init__` is the package's front door; `datasets`, `__init__` and `__main__` are files.
"""

MAY_IMPORT = {
    "cvxpy": ("penalties", "m_step", "theory", "race", "baselines"),
    "matplotlib": ("plots",),
    "jinja2": ("display.page",),
    "typer": ("cli",),
    "rich": ("cli", "display.progress_line"),
    "marimo": (),
    "torch": ("numerics.cuda.sweeps", "numerics.cuda.pair_passes", "numerics.cuda.bounds"),
    "triton": (
        "numerics.cuda.sweeps",
        "numerics.cuda.pair_passes",
        "numerics.cuda.pair_kernels",
        "numerics.cuda.bounds",
    ),
    "distributed": ("processes.dask_cluster",),
    "flint": ("numerics.ball_arithmetic",),
    "pandas": ("display.result_table", "cli.tables"),
    "array_api_compat": ("numerics.arrays",),
    "cvxopt": ("race.formula_solvers",),
    "qics": ("race.formula_solvers",),
    "pymanopt": ("race.factor_solvers",),
}
MATHEMATICS = FOLDERS[FOLDERS.index("pairs") : FOLDERS.index("estimators")]
"""The folders that compute: what is shown of their results is drawn in display/."""

MAY_PRINT = ("cli",)

MAY_CATCH_ALL = ("cli.report", "cli.exercises", "estimators.saving")
"""The command answers every error in words, and checks the code of students; files of models come
from whomever."""


def module_name(path):
    """pairs, m_step.solve, ...; a folder's __init__ is the folder, the front door is __init__."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[-1] == "__init__" and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes_of(module):
    """All nodes of its tree, the whole file first; parsed by who asks, not by who collects."""
    gc.disable()  # a tree has no garbage, and to look for some takes half of the time
    try:
        return list(ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))))
    finally:
        gc.enable()


def folder_of(module):
    """theory.model_claims -> theory"""
    return module.partition(".")[0]


@cache
def inner_imports(module):
    """The modules of this package that `module` imports, anywhere in it, however late."""
    is_folder = module != "__init__" and any(name.startswith(module + ".") for name in FILES)
    parts = [] if module == "__init__" else module.split(".")
    package = parts if is_folder else parts[:-1]
    found = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            targets = [
                alias.name.split(".")[1:]
                for alias in node.names
                if alias.name.split(".")[0] == "seraph_cvx"
            ]
            found |= {".".join(target) or "__init__" for target in targets}
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = package[: len(package) - (node.level - 1)]
        elif (node.module or "").split(".")[0] == "seraph_cvx":
            base = []
        else:
            continue
        steps = (node.module or "").split(".") if node.module else []
        base = base + (steps if node.level else steps[1:])
        for alias in node.names:
            longer = ".".join([*base, alias.name])
            found.add(longer if longer in FILES else ".".join(base) or "__init__")
    return found - {module}


@cache
def outer_imports(module):
    """The top-level names of the other packages that `module` imports."""
    names = set()
    for node in nodes_of(module):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").split(".")[0])
    return names


def test_architecture_the_parser_sees_the_imports():
    """Known imports of each kind are found, or every test below would say nothing."""
    seen = inner_imports("model.m_step_objective")
    assert {"pairs.pair_set", "numerics.psd_cone", "engine.pair_sums"} <= seen
    assert {"certificate", "model.m_step_objective"} <= inner_imports("solvers.solution")
    assert "m_step.conic" in inner_imports("m_step.solve")  # inside a function
    assert "estimators.seraph" in inner_imports("__init__")  # for the type checker
    assert "cvxpy" in outer_imports("m_step.statement")
    assert all(target in FILES for module in FILES for target in inner_imports(module))


SUBFOLDERS = sorted(
    ".".join(path.relative_to(PACKAGE).parts)
    for path in PACKAGE.rglob("*")
    if path.is_dir() and list(path.glob("*.py"))
)


def parts_of(folder):
    """What lies in a folder, each with what it imports of the others: files, and whole folders."""
    depth = folder.count(".") + 2

    def part(module):
        return ".".join(module.split(".")[:depth])

    inside = [module for module in FILES if module.startswith(folder + ".")]
    graph = {part(module): set() for module in inside}
    for module in inside:
        graph[part(module)] |= {
            part(target) for target in inner_imports(module) if target.startswith(folder + ".")
        } - {part(module)}
    return graph


@pytest.mark.parametrize("folder", SUBFOLDERS)
def test_architecture_inside_a_folder_there_is_an_order(folder):
    try:
        TopologicalSorter(parts_of(folder)).prepare()
    except CycleError as error:
        pytest.fail("these import each other in a circle: " + " -> ".join(error.args[1]))


def test_architecture_a_circle_would_be_found():
    graph = parts_of("theory")
    assert graph["theory.report"] >= {"theory.m_step_claims", "theory.claims", "theory.claim"}
    graph["theory.claim"] |= {"theory.report"}
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


@pytest.mark.parametrize("folder", MATHEMATICS)
def test_architecture_mathematics_does_not_know_html(folder):
    for module in FILES:
        if folder_of(module) == folder:
            drawn = list(modules_drawn_at_once(module))
            assert not drawn, f"{module} imports {drawn}: let _repr_html_ import it"


def test_architecture_the_test_above_can_be_red():
    assert list(modules_drawn_at_once("theory.page"))
    # in a method, which is right
    assert "display.cards" in inner_imports("certificate.certificate")


@pytest.mark.parametrize("library", MAY_IMPORT)
def test_architecture_a_heavy_library_has_its_rooms(library):
    for module in FILES:
        if library in outer_imports(module):
            allowed = {module, folder_of(module)} & set(MAY_IMPORT[library])
            assert allowed, f"{module} imports {library}"


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
                    assert not broad or module in MAY_CATCH_ALL, f"{where}: except {kind.id}"
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

MODULES = "import sys; print('modules:', *sys.modules)"


def modules_after(code):
    printed = run_python(f"{code}\n{MODULES}").split()
    return set(printed[printed.index("modules:") + 1 :])


def test_architecture_the_front_door_is_light(modules_by_step):
    assert not modules_by_step["door"] & HEAVY


def test_architecture_help_is_light():
    """As little comes with --help, but for the two libraries that print it."""
    code = """
import sys
from seraph_cvx.__main__ import main
sys.argv = ["seraph-cvx", "--help"]
try:
    main()
except SystemExit as end:
    assert end.code == 0
"""
    assert modules_after(code) & HEAVY == {"typer", "rich"}


def test_architecture_the_two_tests_above_can_be_red(modules_by_step):
    """Older versions of SciPy import more with it."""
    assert "scipy.linalg" in modules_by_step["scipy"] & HEAVY


def test_architecture_the_warning_is_one_of_scikit_learns():
    """Whoever filters scikit-learn's warning filters ours, which is imported when it is issued."""
    assert issubclass(seraph_cvx.NotCertified, ConvergenceWarning)
    objective = seraph_cvx.MStepObjective(
        seraph_cvx.PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1])
    )
    with pytest.warns(ConvergenceWarning, match="iteration_limit") as caught:
        seraph_cvx.solve_m_step(objective, max_iter=1)
    assert caught[0].category is seraph_cvx.NotCertified
    assert caught[0].filename == __file__


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

from seraph_cvx.baselines.gdm import GDM
from seraph_cvx.baselines.itml import ITML
from seraph_cvx.baselines.lmnn import LMNN
for rival in (GDM(), ITML(), LMNN()):
    rival.fit(X[:4], [0, 0, 1, 1])
print("rivals", *sys.modules)

from seraph_cvx import state_m_step
print("statement", *sys.modules)
"""

UNASKED = {
    *("cvxpy", "matplotlib", "typer", "rich"),
    *("torch", "triton", "distributed", "dask", "cupy"),
}


@pytest.fixture(scope="module")
def modules_by_step():
    """What one process has imported after each of its steps."""
    lines = run_python(STEPS).splitlines()
    return {heading: set(modules) for heading, *modules in map(str.split, lines)}


@pytest.fixture
def brought(modules_by_step):
    """Of what nobody asked for, what that process has imported after each of its fits."""
    return {heading: modules & UNASKED for heading, modules in modules_by_step.items()}


def test_architecture_a_first_order_fit_brings_nothing_unasked(brought):
    assert brought["SERAPH"] == set()


def test_architecture_the_rivals_default_fits_need_no_cvxpy(brought):
    assert "cvxpy" not in brought["rivals"]


def test_architecture_the_two_tests_above_this_one_can_be_red(brought):
    assert "cvxpy" in brought["statement"]


def test_architecture_every_public_name_can_be_imported():
    assert all(hasattr(seraph_cvx, name) for name in seraph_cvx.__all__)
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

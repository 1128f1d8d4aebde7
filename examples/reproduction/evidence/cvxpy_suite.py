"""CVXPY's own tests as a benchmark: every continuous DCP problem that they solve is certified.

One run of the tests, with this file as a plugin of pytest, records the problems in a cache folder;
a problem is then certified from its pickle, in a process of its own, so that one run can be
resumed, and one problem looked at: `certify_recorded(17, str(CACHE))`.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import cvxpy as cp
import numpy as np
from cvxpy.lin_ops import lin_utils
from cvxpy.problems.problem import Cache

from seraph_cvx.processes.isolation import ForkServer

from .measuring import MeasuredRows, Report

CACHE = Path(
    os.environ.get("SERAPH_CVX_SUITE", Path.home() / ".cache" / "seraph_cvx" / "cvxpy_suite")
)
"""Where problems and results are kept; never committed."""

LARGEST = 500
"""The most canonical variables of a problem that counts."""

SOLVED = ("optimal", "optimal_inaccurate", "infeasible", "unbounded")
"""What a solver says of a problem that it solved, or settled."""

SOLVER_ACCURACY = 1e-3
"""How far from the optimum, relatively, a solver's value may be before a bound is suspected."""

FIRST_NEW_ID = 10**9
"""Variables made while certifying have ids above those of any recorded problem."""


def pytest_configure(config: Any) -> None:
    """Record every problem whose `solve` returns, as it then is, in the file RECORD_TO."""
    target = os.environ.get("RECORD_TO")
    if target is None:
        return
    stream, solve = open(target, "ab"), cp.Problem.solve  # noqa: SIM115

    def recording_solve(problem: cp.Problem, *args: Any, **kwargs: Any) -> Any:
        value = solve(problem, *args, **kwargs)
        if (record := _record(problem)) is not None:
            pickle.dump(record, stream)
            stream.flush()
        return value

    cp.Problem.solve = recording_solve


def _record(problem: cp.Problem) -> dict[str, Any] | None:
    """A solved problem with its answer, pickled, or None for one that is not asked about."""
    if problem.status not in SOLVED or problem.is_mixed_integer() or not problem.is_dcp():
        return None
    if any(isinstance(constraint, cp.FiniteSet) for constraint in problem.constraints):
        return None  # integer in other words
    if sum(variable.size for variable in problem.variables()) > 4 * LARGEST:
        return None
    stats, solution = problem.solver_stats, copy(problem.solution)
    if solution is not None:
        solution.attr = {}
    lean = {
        "_cache": Cache(),
        "_solver_cache": {},
        "_solver_stats": None,
        "_solution": solution,
    }  # what is left out belongs to solvers, and some of it cannot be pickled
    kept = {name: problem.__dict__[name] for name in lean}
    problem.__dict__.update(lean)
    try:
        content = cloudpickle.dumps(problem)
    except (TypeError, pickle.PicklingError, AttributeError, RuntimeError) as error:
        content = f"{type(error).__name__}: {error}"
    finally:
        problem.__dict__.update(kept)
    frame: Any = sys._getframe()
    while frame is not None and not frame.f_code.co_filename.endswith("bisection.py"):
        frame = frame.f_back
    return {
        "bisection": frame is not None,  # a step of it, for a quasiconvex problem
        "test": os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)"),
        "solver": getattr(stats, "solver_name", None),
        "status": problem.status,
        "value": None if problem.value is None else float(np.real(problem.value)),
        "problem": content,
    }


def record_suite(folder: Path = CACHE) -> None:
    """Run CVXPY's tests, recording, then keep each canonical program once."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = folder / "recorded.pickles"
    raw.unlink(missing_ok=True)
    tests = Path(cp.__file__).parent / "tests"
    here = str(Path(__file__).parents[1])
    environment = os.environ | {
        "RECORD_TO": str(raw),
        "PYTHONPATH": os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = [sys.executable, "-m", "pytest", str(tests), "-p", "evidence.cvxpy_suite", "-q"]
    command += ["-p", "no:cacheprovider", "--tb=no", "--rootdir", str(folder)]
    subprocess.run([*command, "-c", os.devnull], env=environment, check=False, cwd=folder)
    keep_distinct(folder)


def keep_distinct(folder: Path = CACHE) -> None:
    """Write each canonical program once, numbered, with an index; count what is left out."""
    lin_utils.ID_COUNTER.count = FIRST_NEW_ID
    left_out: Counter[str] = Counter()
    entries: dict[str, dict[str, Any]] = {}
    problems: dict[str, bytes] = {}
    for record in _records(folder / "recorded.pickles"):
        content = record.pop("problem")
        if isinstance(content, str):
            left_out[f"not pickled: {content}"] += 1
            continue
        try:
            described = _described(pickle.loads(content))
        except Exception as error:  # of CVXPY, on problems made to fail
            left_out[f"not compiled: {type(error).__name__}: {str(error)[:60]}"] += 1
            continue
        key = described.pop("key")
        if described["n"] > LARGEST:
            left_out[f"more than {LARGEST} canonical variables"] += 1
        elif key not in entries or entries[key]["status"] == "optimal_inaccurate":
            entries[key] = record | described
            problems[key] = content
        else:
            left_out["the same canonical program again"] += 1
    for old in (folder / "problems").glob("*.pickle"):
        old.unlink()
    (folder / "problems").mkdir(exist_ok=True)
    for number, content in enumerate(problems.values()):
        (folder / "problems" / f"{number}.pickle").write_bytes(content)
    index = {"left_out": dict(left_out), "problems": list(entries.values())}
    (folder / "index.json").write_text(json.dumps(index, indent=0))


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a file, up to its end or to where a killed run broke off."""
    with open(path, "rb") as stream, contextlib.suppress(EOFError):
        while True:
            yield pickle.load(stream)


def _described(problem: cp.Problem) -> dict[str, Any]:
    """The sizes and cones of a problem's canonical program, and a hash of its numbers."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        data, _, _ = problem.get_problem_data(cp.CLARABEL)
    digest = hashlib.sha256(type(problem.objective).__name__.encode())
    if not isinstance(data, dict):
        raise ValueError("no variables")  # CVXPY evaluates it, and calls no solver
    for name in ("P", "A", "b", "c"):
        if data.get(name) is not None:
            content = data[name]
            dense = content.toarray() if hasattr(content, "toarray") else np.asarray(content)
            digest.update(f"{name}{dense.shape}".encode() + (dense + 0.0).tobytes())
    dims = data["dims"]
    digest.update(f"{dims} {data.get('offset', 0)}".encode())
    kinds = {
        "PSD": bool(dims.psd),
        "exponential": bool(dims.exp),
        "power": bool(dims.p3d) or bool(getattr(dims, "pnd", ())),
        "SOC": bool(dims.soc),
    }
    cones = [name for name, present in kinds.items() if present] or ["linear"]
    P = data.get("P")
    if P is not None and P.nnz:
        cones.append("quadratic objective")
    return {
        "key": digest.hexdigest(),
        "n": int(data["c"].size),
        "rows": int(data["b"].size),
        "cones": " + ".join(cones),
    }


def load_problem(number: int, folder: Path = CACHE) -> cp.Problem:
    """A recorded problem, with the answer of the solver that the test called."""
    lin_utils.ID_COUNTER.count = max(lin_utils.ID_COUNTER.count, FIRST_NEW_ID)
    return pickle.loads((folder / "problems" / f"{number}.pickle").read_bytes())


def load_index(folder: Path = CACHE) -> dict[str, Any]:
    """What is known of the recorded problems; they are recorded now if they were not before."""
    if not (folder / "index.json").exists():
        record_suite(folder)
    return json.loads((folder / "index.json").read_text())


def certify_recorded(number: int, folder: str) -> dict[str, Any]:
    """The bounds proved on a recorded problem, or what was raised instead."""
    from seraph_cvx.proof import certify_problem

    problem = load_problem(number, Path(folder))
    clock = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proved = certify_problem(problem)
    except Exception as error:  # counted by type and words
        words = f"{type(error).__name__}: {error}"
        return {"raised": words, "seconds": time.perf_counter() - clock}
    certificates = Path(folder) / "certificates"
    certificates.mkdir(exist_ok=True)
    (certificates / f"{number}.json").write_text(proved.to_json())
    return {
        "lower": proved.lower,
        "upper": proved.upper,
        "infeasible": bool(proved.infeasible),
        "unbounded": bool(proved.unbounded),
        "claim": proved.claim,
        "steps": [str(step) for step in proved.steps],
        "seconds": time.perf_counter() - clock,
    }


def check_recorded(number: int, folder: str) -> dict[str, Any]:
    """What the checker, which shares no code with the certifier, says of a certificate's file."""
    from seraph_cvx.proof.checker import check_certificate

    clock = time.perf_counter()
    found = check_certificate(Path(folder) / "certificates" / f"{number}.json")
    seconds = time.perf_counter() - clock
    return {"valid": found.valid, "reasons": found.reasons, "seconds": seconds}


def certify_all(
    numbers: Iterable[int], time_limit: float, folder: Path, journal: Path
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Certify problems and check their files, each in a process, unless the journal has it."""
    known = {}
    if journal.exists():
        known = dict(json.loads(line) for line in journal.read_text().splitlines())
    preload = ["cvxpy", "seraph_cvx.proof", __name__]
    with ForkServer(preload) as server, open(journal, "a") as stream:

        def run(work: Callable[..., Any], number: int) -> dict[str, Any]:
            outcome = server.run(work, number, str(folder), time_limit=time_limit)
            failure = f"{outcome.status}: {outcome.detail}"
            return outcome.result or {"raised": failure, "seconds": outcome.seconds}

        for number in numbers:
            if number not in known:
                result = run(certify_recorded, number)
                if "raised" not in result:
                    result["file"] = run(check_recorded, number)
                stream.write(json.dumps([number, result]) + "\n")
                stream.flush()
                known[number] = result
            yield number, known[number]


def verdict(entry: dict[str, Any], result: dict[str, Any]) -> str:
    """What a result is worth, in a few words: the rows of the table of failures."""
    if "raised" in result:
        return result["raised"].partition("\n")[0][:100]
    if result["infeasible"] or result["unbounded"]:
        proved = "infeasible" if result["infeasible"] else "unbounded"
        agrees = entry["status"] == proved
        return f"proved {proved}" + ("" if agrees else f", solver: {entry['status']}")
    lower, upper = result["lower"], result["upper"]
    if entry["status"] in ("infeasible", "unbounded"):
        return f"{entry['status']} not proved"
    missing = [
        name for name, bound in (("lower", lower), ("upper", upper)) if not _is_finite(bound)
    ]
    if missing:
        return f"no {' and no '.join(missing)} bound"
    if lower > upper:
        return "CROSSED"
    value = lower if entry["value"] is None else entry["value"]
    slack = SOLVER_ACCURACY * max(1.0, abs(value))
    if lower > value + slack or upper < value - slack:
        return "proved bounds exclude the solver's value"
    return "gap <= 1e-6" if relative_gap(lower, upper) <= 1e-6 else "gap > 1e-6"


def relative_gap(lower: float, upper: float) -> float:
    """The gap in units of the larger bound, or in the problem's units where both are below 1."""
    return (upper - lower) / max(1.0, abs(lower), abs(upper))


def _is_finite(bound: float | None) -> bool:
    return bound is not None and np.isfinite(bound)


def suite_results(report: Report, time_limit: float) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The recorded problems with what was proved of each by the certifier as it is now."""
    entries, results = load_index()["problems"], []
    for number, result in certify_all(range(len(entries)), time_limit, CACHE, current_journal()):
        report.tell(f"{number} of {len(entries)}, {entries[number]['test']}")
        results.append((entries[number], result))
    return results


def current_journal() -> Path:
    """The results of the certifier as it is now: of another version there is another file."""
    import seraph_cvx.proof as package

    digest = hashlib.sha256()
    for path in sorted(Path(str(package.__file__)).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return CACHE / f"results-{digest.hexdigest()[:8]}.jsonl"


def bench_suite_by_cone(report: Report, time_limit: float) -> MeasuredRows:
    """Certify what CVXPY's own tests solve, by the cones of the conic program."""
    report.start("Problems of CVXPY's own tests, certified, by cones")
    results = suite_results(report, time_limit)
    kinds = sorted({entry["cones"] for entry, _ in results})
    groups = {kind: [row for row in results if row[0]["cones"] == kind] for kind in kinds}
    groups["all"] = results
    groups["all but steps of bisections"] = [row for row in results if not row[0]["bisection"]]
    for kind, rows in groups.items():
        yield suite_row(kind, rows)
    report.note(
        f"Continuous DCP problems with up to {LARGEST} canonical variables, each canonical program "
        "once. Solved: the test's solver said optimal or optimal_inaccurate. Gaps are relative to "
        "the larger bound, or absolute below 1. Refused: atoms that CVXPY approximates, by name. "
        "Excluded: a proved bound excludes the solver's value by more than a thousandth."
    )
    for words, count in sorted(load_index()["left_out"].items(), key=lambda item: -item[1]):
        report.note(f"Left out: {count}, {words}")


def suite_row(kind: str, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Any]:
    """A row of the table: of some problems, how many of what."""
    words = [(entry["status"].partition("_")[0], verdict(entry, result)) for entry, result in rows]
    solved = [text for status, text in words if status == "optimal"]
    seconds = [result["seconds"] for _, result in rows]
    files = [result["file"] for _, result in rows if "file" in result]

    def proved(status: str) -> str:
        reported = [text for said, text in words if said == status]
        return f"{reported.count(f'proved {status}')} of {len(reported)}"

    return {
        "cones": kind,
        "solved": len(solved),
        "refused": sum(text.startswith("Refused") for text in solved),
        "both bounds": sum(text.startswith(("gap", "proved bounds")) for text in solved),
        "gap <= 1e-6": solved.count("gap <= 1e-6"),
        "proved infeasible instead": sum(text.startswith("proved infeas") for text in solved),
        "infeasible proved": proved("infeasible"),
        "unbounded proved": proved("unbounded"),
        "crossed": solved.count("CROSSED"),
        "excluded": sum(text.startswith("proved bounds exclude") for text in solved),
        "files accepted": f"{sum(file.get('valid', False) for file in files)} of {len(files)}",
        "median s": float(np.median(seconds)),
        "total s": float(np.sum(seconds)),
    }


def bench_suite_by_reason(report: Report, time_limit: float) -> MeasuredRows:
    """Why problems of CVXPY's own tests are not certified to 1e-6, with a test of each kind."""
    report.start("What is not certified to 1e-6, by reason")
    counts: Counter[str] = Counter()
    examples: dict[str, list[str]] = {}
    for entry, result in suite_results(report, time_limit):
        words = verdict(entry, result)
        if words not in ("gap <= 1e-6", "proved infeasible", "proved unbounded"):
            counts[words] += 1
            name = entry["test"].rpartition("::")[2]
            examples.setdefault(words, [])
            if name not in examples[words]:
                examples[words].append(name)
    for words, count in counts.most_common():
        yield {"reason": words, "problems": count, "tests": ", ".join(examples[words][:4])}

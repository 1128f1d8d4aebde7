"""Libraries of problems: each file solved once, its answer kept, and its optimum proved.

The solve and the proof have a process each. The answer is a pickle in a folder, from which a proof
can be measured again without solving; `prove_file` is the way to look at a single file.
"""

from __future__ import annotations

import csv
import math
import operator
import pickle
import re
import resource
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.io
from cvxpy.problems.problem import SolverStats
from cvxpy.reductions.solution import Solution

from seraph_cvx.display.result_table import ResultTable
from seraph_cvx.processes.isolation import ONE_THREAD, ForkServer
from seraph_cvx.processes.journal import Journal
from seraph_cvx.proof import certify_problem, read_problem

LIBRARIES = ("netlib", "infeas", "kennington", "maros", "sdplib", "cblib")
"""The folders that are looked for."""

FORMATS = (".mps", ".qps", ".lp", ".dat-s", ".cbf", ".mat")
"""The endings of files that are read; .mat as Maros and Meszaros come with qpbenchmark."""

LARGE, LARGE_ORDER = 60_000, 50
"""Letters of a file in SDPA's format, or rows of a block, from which SDPA solves it.

Clarabel is more accurate, and takes minutes for some blocks of 124 rows.
"""

CLOSE = 1e-6
"""The relative gap below which an optimum counts as proved."""

PUBLISHED = Path(__file__).parent.parent / "published-values.csv"
"""Optimal values of Netlib's problems that others published, with their digits."""

PRELOAD = ("cvxpy", "seraph_cvx.proof.certify", "flint", "highspy", __name__)


class ProofJournal(Journal):
    """The rows of measured files, by library and file."""

    work = "measurement"

    def __init__(self, path: Path, resume: bool) -> None:
        self.rows: dict[tuple[str, str], dict[str, Any]] = {}
        super().__init__(path, resume)

    def take(self, kind: str, content: dict[str, Any]) -> None:
        """Keep a row."""
        self.rows[content["library"], content["file"]] = content


def find_files(folder: Path, libraries: list[str], only: str | None = None) -> list[Path]:
    """The files of the libraries in a folder, or of the folder itself, small ones first."""
    folders = [folder / name for name in libraries if (folder / name).is_dir()] or [folder]
    found = [
        path
        for place in folders
        for path in place.iterdir()
        if path.name.lower().removesuffix(".gz").endswith(FORMATS)
        and (only is None or any(fnmatch(_name(path), part) for part in only.split(",")))
    ]
    return sorted(found, key=lambda path: path.stat().st_size)


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def read(path: Path) -> cp.Problem:
    """The problem of a file."""
    if path.suffix != ".mat":
        return read_problem(path)
    data = scipy.io.loadmat(path)
    P, A = (scipy.sparse.csr_array(data[name].astype(float)) for name in ("P", "A"))
    low, high = (data[name].ravel().astype(float) for name in ("l", "u"))
    x = cp.Variable(P.shape[0], name="x")
    objective = data["q"].ravel().astype(float) @ x + float(data["r"].item())
    if P.nnz:
        objective += cp.quad_form(x, cp.psd_wrap(P)) / 2.0
    equal = low == high
    above, below = ~equal & (low > -1e20), ~equal & (high < 1e20)
    constraints = []
    for chosen, relation, end in (
        (equal, operator.eq, low),
        (below, operator.le, high),
        (above, operator.ge, low),
    ):
        if chosen.any():
            constraints.append(relation(A[np.flatnonzero(chosen)] @ x, end[chosen]))
    return cp.Problem(cp.Minimize(objective), constraints)


def solver_for(path: Path, solver: str | None) -> str:
    """The solver of a file: the one that is asked for, SDPA for large .dat-s ones, or Clarabel."""
    if solver is not None:
        return solver
    is_sdpa = path.name.endswith(".dat-s") and "SDPA" in cp.installed_solvers()
    if is_sdpa and path.stat().st_size <= LARGE:
        text = [line for line in path.read_text().splitlines() if line.strip()[:1] not in '"*']
        is_sdpa = max(map(int, re.findall(r"-?\d+", text[2]))) >= LARGE_ORDER
    return "SDPA" if is_sdpa else "CLARABEL"


def solve_file(path: Path, solver: str, answer: Path) -> None:
    """Solve the problem of a file, and keep what the solver said."""
    problem = read(path)
    said: dict[str, Any] = {"solver": solver, "status": "failed", "seconds": math.nan}
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data, chain, inverse = problem.get_problem_data(solver, solver_opts={})
            began = time.process_time()
            found = chain.solve_via_data(problem, data, solver_opts={})
            said["seconds"] = time.process_time() - began
            problem.unpack_results(found, chain, inverse)
    except Exception as error:
        said["status"] = f"failed ({type(error).__name__}: {str(error)[:100]})"
        said["seconds"] = time.process_time() - began
    else:
        said |= {
            "status": problem.status,
            "value": problem.value,
            "variables": [variable.value for variable in problem.variables()],
            "duals": [constraint.dual_value for constraint in problem.constraints],
            "stats": problem.solver_stats,
            "raw": _raw(solver, problem._solver_cache.get(solver)),
        }
    answer.parent.mkdir(parents=True, exist_ok=True)
    partial = answer.with_suffix(".part")
    partial.write_bytes(pickle.dumps(said))
    partial.rename(answer)


def _raw(solver: str, kept: Any) -> Any:
    """What CVXPY keeps of a solver's answer for a warm start, as far as it can be pickled."""
    if solver == "CLARABEL" and kept is not None:
        found = kept.get_solution()
        vectors = {name: np.array(getattr(found, name)) for name in "xsz"}
        return SimpleNamespace(status=str(found.status), **vectors)
    return kept if solver == "SCS" else None


class _Kept:
    """The answer of Clarabel, as its own object gives it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def get_solution(self) -> Any:
        return self.answer


def give_answer(problem: cp.Problem, said: dict[str, Any]) -> None:
    """Let a problem be as after the solve whose answer was kept."""
    if "value" not in said:
        return
    values = dict(zip(problem.variables(), said["variables"], strict=True))
    known = {variable.id: value for variable, value in values.items() if value is not None}
    if known or said["status"] in ("infeasible", "unbounded"):
        problem.unpack(Solution(said["status"], said["value"], known, {}, {}))
    for constraint, kept in zip(problem.constraints, said["duals"], strict=True):
        parts = kept if len(constraint.dual_variables) > 1 else [kept]
        for dual, value in zip(constraint.dual_variables, parts, strict=True):
            dual.save_value(value)
    problem._solver_stats = said["stats"] or SolverStats(said["solver"])
    if said["raw"] is not None:
        raw = said["raw"]
        problem._solver_cache = {said["solver"]: raw if said["solver"] == "SCS" else _Kept(raw)}


def prove_file(path: Path, answer: Path, cpu_limit: float) -> dict[str, Any]:
    """Prove what can be proved of a file from the kept answer, within some processor seconds."""
    said = pickle.loads(answer.read_bytes())
    problem = read(path)
    lines: list[str] = []

    def interrupt(*_: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        raise KeyboardInterrupt

    began = time.process_time()
    if said["solver"] in cp.installed_solvers():
        problem.get_problem_data(said["solver"])
    compile_seconds = time.process_time() - began
    give_answer(problem, said)
    signal.signal(signal.SIGPROF, interrupt)
    began = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(began + 1.5 * cpu_limit + 30),) * 2)
    signal.setitimer(signal.ITIMER_PROF, cpu_limit)
    row: dict[str, Any] = {"solver": said["solver"], "status": said["status"]}
    row |= {"solve_seconds": said["seconds"] if math.isfinite(said["seconds"]) else None}
    row["compile_seconds"] = compile_seconds
    try:
        certificate = certify_problem(problem, progress=lines.append)
    except KeyboardInterrupt:
        row["reason"] = f"nothing within {cpu_limit:g} s; last: {' | '.join(lines[-2:])}"
    except Exception as error:
        row["reason"] = f"{type(error).__name__}: {error}"
    else:
        row |= _facts(certificate)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return row | {"proof_seconds": time.process_time() - began}


def _facts(certificate: Any) -> dict[str, Any]:
    program, optimum = certificate.program, getattr(certificate, "optimum", None)
    ends = {"lower": certificate.lower, "upper": certificate.upper}
    gap = certificate.relative_gap
    steps = certificate.steps if not gap <= CLOSE else ()
    return {
        "rows": program.A.shape[0],
        "variables": program.A.shape[1],
        "nonzeros": program.A.nnz,
        **{name: end if math.isfinite(end) else None for name, end in ends.items()},
        "relative_gap": gap if math.isfinite(gap) else None,
        "exact": optimum is not None,
        "infeasible": certificate.infeasible,
        "unbounded": certificate.unbounded,
        "claim": certificate.claim,
        "reason": " | ".join(steps[-6:]),
    }


def measure(
    paths: list[Path],
    journal: ProofJournal,
    answers: Path,
    solver: str | None,
    limits: dict[str, float],
    processes: int,
    follow: Callable[[dict[str, Any], int, int], None],
) -> None:
    """Measure each file that the journal lacks, some at a time, each in processes of its own."""
    waiting = [path for path in paths if (path.parent.name, path.name) not in journal.rows]
    servers = [ForkServer(PRELOAD, ONE_THREAD) for _ in range(processes)]
    free = list(servers)

    def one(path: Path) -> dict[str, Any]:
        server = free.pop()
        try:
            return _measured(server, path, answers, solver_for(path, solver), limits)
        finally:
            free.append(server)

    try:
        with ThreadPoolExecutor(processes) as pool:
            runs = [pool.submit(one, path) for path in waiting]
            try:
                for number, run in enumerate(as_completed(runs), 1):
                    journal.add("proof", run.result())
                    follow(run.result(), number, len(waiting))
            except BaseException:
                for run in runs:
                    run.cancel()
                for server in servers:
                    server.close()
                raise
    finally:
        for server in servers:
            server.close()


def _measured(
    server: ForkServer, path: Path, answers: Path, solver: str, limits: dict[str, float]
) -> dict[str, Any]:
    """The row of one file: solved if no answer is kept, then proved."""
    row = {"library": path.parent.name, "file": path.name, "solver": solver}
    memory = int(limits["memory"] * 2**30)
    answer = answers / path.parent.name / f"{path.name}.{solver}.pickle"
    if not answer.exists():
        solve = limits["solve"]
        solved = server.run(
            solve_file, path, solver, answer, time_limit=solve, memory_limit=2 * memory
        )
        if solved.status != "done":
            said = {"solver": solver, "status": f"{solved.status} ({solved.detail[:100]})"}
            answer.parent.mkdir(parents=True, exist_ok=True)
            answer.write_bytes(pickle.dumps(said | {"seconds": solved.seconds}))
    wall = 20.0 * limits["cpu"] + 600.0  # other work may share the cores: processor time counts
    proved = server.run(
        prove_file, path, answer, limits["cpu"], time_limit=wall, memory_limit=memory
    )
    if proved.status != "done":
        return row | {"reason": f"{proved.status}: {proved.detail[:300]}"}
    return row | proved.result | {"peak_gigabytes": round(proved.peak_bytes / 2**30, 2)}


def outcome(row: dict[str, Any]) -> str:
    """What was proved of a file, in a word or two."""
    if row.get("infeasible") or row.get("unbounded"):
        return "infeasible" if row["infeasible"] else "unbounded"
    gap, ends = row.get("relative_gap"), [row.get("lower"), row.get("upper")]
    if gap is not None and gap <= CLOSE:
        return "exact" if row.get("exact") else "proved"
    if None not in ends:
        return "bounded"
    return "nothing" if ends == [None, None] else "one bound"


OUTCOMES = ("exact", "proved", "infeasible", "unbounded", "bounded", "one bound", "nothing")


def table_rows(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of the table, as people read them."""
    for row in sorted(rows, key=lambda row: (row["library"], row["file"].lower())):
        names = ("library", "file", "rows", "variables", "nonzeros", "solver", "status")
        shown = {name: row.get(name, "") for name in names}
        for name in ("lower", "upper"):
            shown[name] = "" if row.get(name) is None else repr(row[name])
        for name in ("relative_gap", "solve_seconds", "proof_seconds"):
            shown[name] = "" if row.get(name) is None else float(row[name])
        yield shown | {"outcome": outcome(row), "reason": row.get("reason", "")}


def summary_rows(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A row for each library: how many of its files have each outcome, and the time it took."""
    libraries = dict.fromkeys(row["library"] for row in rows)
    for library in sorted(libraries, key=lambda name: [*LIBRARIES, name].index(name)):
        own = [row for row in rows if row["library"] == library]
        outcomes = [outcome(row) for row in own]
        timed = [
            (row["proof_seconds"], row["solve_seconds"], row["compile_seconds"])
            for row in own
            if row.get("solve_seconds") and outcome(row) in OUTCOMES[:4]
        ]
        alone = [proof / solve for proof, solve, _ in timed]
        whole = [proof / (solve + compiling) for proof, solve, compiling in timed]
        yield {
            "library": library,
            "files": len(own),
            **{name: outcomes.count(name) for name in OUTCOMES},
            "proof / solver": float(np.median(alone)) if alone else "",
            "proof / problem.solve()": float(np.median(whole)) if whole else "",
        }


PAGE = """# What is proved about the problem libraries

{verdict}

Clarabel or SDPA, as CVXPY calls them, solved each file once, and `certify_problem` started
from that answer. Each proof had one process, one core, {cpu:g} s of processor
time and {memory:g} GB, not counting the solve. A solver's own "optimal" counts for nothing here.
"Exact" means the optimum as a rational number, "proved" two bounds within a relative 1e-6 of each
other. The last two columns are medians over the files of the first four kinds: the time of a proof
divided by the time of the solver alone, and by the time of `problem.solve()`, which compiles the
problem as the proof does.

{summary}

VSDP, with the best of five solvers, has both bounds for 55 of SDPLIB's 92 files, 43 of them within
1e-6. We know no table of proven bounds for the other libraries.

## Against published values

{published}
## Where the bounds are not within 1e-6

{others}

Every instance with its interval is in [proven-intervals.csv](proven-intervals.csv). The folders are
those of the public repositories vsdp/SDPLIB, zrjer/LP-TEST-PROBLEM-FROM-NETLIB (netlib,
Data-Infeas), qpsolvers/maros_meszaros_qpbenchmark (data) and oxfordcontrol/ClarabelBenchmarks
(cblib, files of up to 520 kB), without the files that are too large for these repositories. To
repeat all of this: `python examples/reproduction/libraries.py FOLDER --out DIR`.
"""

SHOWN = 160
"""Letters of a reason on the page; the rows have all of it."""


def write_pages(rows: list[dict[str, Any]], out: Path, limits: dict[str, float]) -> None:
    """Write the page and the table of all instances."""
    table = list(table_rows(rows))
    with (out / "proven-intervals.csv").open("w", newline="", encoding="utf-8") as file:
        names = [name for name in table[0] if name != "reason"]
        writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    done = [row for row in rows if outcome(row) in ("exact", "proved", "infeasible", "unbounded")]
    verdict = (
        f"**{len(done)} of {len(rows)} files are proved**, to a relative gap of 1e-6 or exactly."
    )
    others = [
        {
            "library": row["library"],
            "file": row["file"],
            "outcome": row["outcome"],
            "gap": row["relative_gap"],
            "why": row["reason"].replace("|", ";")[-SHOWN:],
        }
        for row in table
        if row["outcome"] in ("bounded", "one bound", "nothing")
    ]
    text = PAGE.format(
        verdict=verdict,
        cpu=limits["cpu"],
        memory=limits["memory"],
        summary=ResultTable("Libraries", list(summary_rows(rows))).to_markdown(),
        published=_against_published(rows),
        others=ResultTable("Others", others).to_markdown() if others else "None.",
    )
    (out / "libraries.md").write_text(text, encoding="utf-8")


def _against_published(rows: list[dict[str, Any]]) -> str:
    """Whether values that others published lie in the intervals, to the digits that they have."""
    with PUBLISHED.open(encoding="utf-8") as file:
        published = list(csv.DictReader(file))
    known = {row["file"].lower().removesuffix(".gz"): row for row in rows}
    seen: Counter[str] = Counter()
    off: list[str] = []
    for entry in published:
        row = known.get(f"{entry['file']}.mps")
        if row is None or row.get("lower") is None or row.get("upper") is None:
            continue
        value = float(entry["published"])
        # Half a unit of the last digit; and doubles of a program may differ by theirs.
        slack = abs(value) * max(0.5 * 10.0 ** (1 - int(entry["digits"])), 1e-13)
        seen[entry["source"]] += 1
        if not row["lower"] - slack <= value <= row["upper"] + slack:
            interval = f"[{row['lower']!r}, {row['upper']!r}]"
            off.append(f"{entry['file']} ({entry['source']}): {entry['published']}, {interval}")
    exact = sum("(exact)" in line for line in off)
    readme = len(off) - exact
    text = (
        f"Of {seen['exact']} optima that the LiFe project publishes with up to 32 digits, {exact}\n"
        f"lie outside the interval that is proven here. Of {seen['readme']} with 11 digits in\n"
        f"the readme of Netlib's collection, {readme} do: the readme has what solvers found in\n"
        "double precision, and leaves out the constant in the objective of e226"
    )
    return text + (".\n" if not off else ":\n\n" + "\n".join(f"- {line}" for line in off) + "\n")

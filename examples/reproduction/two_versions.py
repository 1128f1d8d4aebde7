"""Two checkouts of the package side by side, in one run: their processor times on one core.

    python examples/reproduction/two_versions.py fits|m-steps|certificates OLD NEW [SAMPLINGS]

OLD and NEW are folders with a checkout each (`git worktree add OLD COMMIT`). On samplings of the
tasks of Table 1, five by default: `SERAPH().fit`, with J where it ended; `solve_m_step` of the
first M-step to a certified 1e-8; `certify` at the metrics of the first and the second M-step, which
NEW finds before, beside the gap that each version reaches by itself. Each has its certified gap.
Ratios are new / old, of the least times of three rounds in turns. Tasks whose files are not in
SERAPH_CVX_DATA are left out.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROUNDS = 3


def timed(run, repeats, long=1.0):
    """What a function returns, and its least processor time; one that takes long runs once."""
    least = math.inf
    for _ in range(repeats):
        clock = time.process_time()
        result = run()
        seconds = time.process_time() - clock
        least = min(least, seconds) if seconds > 0.0 else least  # some clocks stand still
        if least > long:
            break
    return result, least


def fits(X, y):
    from seraph_cvx import SERAPH

    model, seconds = timed(lambda: SERAPH().fit(X, y), 3)
    found = {"J": model.history_[-1].descent_value, "gap": model.certificate_.relative_gap}
    yield "", {"seconds": seconds} | found


def m_steps(X, y):
    from seraph_cvx import MStepObjective, PairSet, solve_m_step

    pairs = PairSet.from_labels(X, y)
    solution, seconds = timed(lambda: solve_m_step(MStepObjective(pairs)), 8)
    yield "", {"seconds": seconds, "gap": solution.relative_gap}


def certificates(X, y, first, second):
    from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step

    pairs = PairSet.from_labels(X, y)
    for name, previous, metric in ((" first", None, first), (" second", first, second)):
        objective = MStepObjective(pairs, previous_metric=previous)
        own = certify(objective, solve_m_step(objective).metric).relative_gap
        found, seconds = timed(lambda o=objective, A=metric: certify(o, A), 40)
        yield name, {"seconds": seconds, "gap": found.relative_gap, "own gap": own}


def metrics(X, y):
    """The metrics of the first and the second M-step, at which certificates are compared."""
    from seraph_cvx import MStepObjective, PairSet, solve_m_step

    pairs = PairSet.from_labels(X, y)
    first = np.asarray(solve_m_step(MStepObjective(pairs)).metric)
    second = np.asarray(solve_m_step(MStepObjective(pairs, previous_metric=first)).metric)
    yield "", {"first": first.tolist(), "second": second.tolist()}


MEASUREMENTS = {"fits": fits, "m-steps": m_steps, "certificates": certificates, "metrics": metrics}


def measure(kind, folder):
    """Print what a version measures on the points in a folder, as lines of JSON."""
    warnings.simplefilter("ignore")
    for path in sorted(Path(folder).glob("*.npz")):
        for name, found in MEASUREMENTS[kind](**np.load(path)):
            print(json.dumps([path.stem + name, found]), flush=True)


def measured_by(checkout, kind, folder):
    """What a checkout measures, by name, in a process of its own on one thread."""
    environment = os.environ | {"PYTHONPATH": str(Path(checkout).resolve())}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), "measure", kind, folder]
    done = subprocess.run(
        command, env=environment, cwd="/", check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(map(json.loads, done.stdout.splitlines()))


def draw(folder, samplings):
    """Write samplings of the tasks that there are data for."""
    from evidence.tasks import TASKS, draw_sampling, load_task

    for task in TASKS.values():
        try:
            data = load_task(task)
        except FileNotFoundError:
            print(f"{task.name} left out: no data")
            continue
        for seed in range(samplings):
            drawn = draw_sampling(task, *data, seed=seed)
            np.savez(Path(folder, f"{task.name} {seed}"), X=drawn.X, y=drawn.y)


def compare(kind, old, new, samplings="5"):
    with tempfile.TemporaryDirectory() as folder:
        draw(folder, int(samplings))
        if kind == "certificates":
            for name, found in measured_by(new, "metrics", folder).items():
                path = Path(folder, f"{name}.npz")
                np.savez(path, **np.load(path), **found)
        rounds = [
            [measured_by(checkout, kind, folder) for checkout in (old, new)] for _ in range(ROUNDS)
        ]
    ratios = []
    for name, theirs in rounds[-1][0].items():
        ours = rounds[-1][1][name]
        seconds = [min(run[side][name]["seconds"] for run in rounds) for side in (0, 1)]
        ratios.append(seconds[1] / seconds[0])
        numbers = [f"{key} {theirs[key]:.9g} {ours[key]:.9g}" for key in ours if key != "seconds"]
        cells = [name, *(f"{1e3 * s:.2f} ms" for s in seconds), f"{ratios[-1]:.2f}", *numbers]
        print("|", " | ".join(cells), "|", flush=True)
    mean = math.exp(np.mean(np.log(ratios)))
    print(f"new / old: geometric mean {mean:.3f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*sys.argv[2:])
    elif len(sys.argv) in (4, 5) and sys.argv[1] in MEASUREMENTS:
        compare(*sys.argv[1:])
    else:
        sys.exit(__doc__)

"""What the comparisons of two installed versions share: child processes, timing, data, tables."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples" / "reproduction"))


def run_child(python: str, *arguments: str, limit: float | None = None) -> list:
    """What this script prints when another Python runs it, line by line of JSON, on one thread."""
    command = [python, str(Path(sys.argv[0]).resolve()), *arguments]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command,
        env=environment,
        cwd="/",
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=limit,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def timed(run, repeats: int, long: float = math.inf):
    """What a function returns, and its least processor time; one that takes long runs once."""
    least = math.inf
    for _ in range(repeats):
        clock = time.process_time()
        result = run()
        least = min(least, time.process_time() - clock)
        if least > long:
            break
    return result, least


def some_images(name: str, n: int, rng):
    """Images of usps or mnist at random, and their digits; None where there are no data."""
    import numpy as np

    path = Path(os.environ.get("SERAPH_CVX_DATA", "."), f"{name}.npz")
    if not path.exists():
        return None
    kept = np.load(path)
    chosen = rng.permutation(len(kept["y"]))[:n]
    return kept["X"][chosen] / 255.0, kept["y"][chosen].astype(int)


def say(line) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


def print_header(*columns: str) -> None:
    print_row(*columns)
    print_row(*["---"] * len(columns))


def print_row(*cells) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main(parts: dict, compare, arguments: range, doc: str) -> None:
    """Run a part of the comparison, by its name, or all of it; without arguments say how."""
    if sys.argv[1:] and sys.argv[1] in parts:
        parts[sys.argv[1]](*sys.argv[2:])
    elif len(sys.argv) - 1 in arguments:
        compare(*sys.argv[1:])
    else:
        sys.exit(doc)

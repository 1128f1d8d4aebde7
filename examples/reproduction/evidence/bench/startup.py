"""The cost of starting: processor time of fresh processes, in imports of NumPy."""

from __future__ import annotations

import subprocess
import sys

from seraph_cvx.display.result_table import ResultTable

from .report import Report

STARTS = {
    "import numpy": "import numpy",
    "import seraph_cvx": "import seraph_cvx",
    "seraph-cvx --help": """
import sys
from seraph_cvx.__main__ import main
sys.argv = ["seraph-cvx", "--help"]
try:
    main()
except SystemExit:
    pass
""",
    "seraph-cvx explore, the first view": """
import seraph_cvx.cli
from seraph_cvx.explorer.web import server
server.Pages().answer("/events", {})
""",
}
"""The code that each process runs, the unit of the others first."""

TELL = "\nimport sys, time\nsys.stderr.write(str(time.process_time()))"
"""The last line of each process: it reports its processor time, including its start."""


def bench_startup(report: Report, rounds: int = 10) -> ResultTable:
    """Measure each start's least processor time, in turns, so that other load affects all alike."""
    report.start("Processor time of fresh processes")
    best = dict.fromkeys(STARTS, float("inf"))
    for number in range(1, rounds + 1):
        report.tell(f"round {number} of {rounds}")
        for name, code in STARTS.items():
            best[name] = min(best[name], processor_seconds(code))
    for name, seconds in best.items():
        ratio = seconds / best["import numpy"]
        report.add({"process": name, "processor (s)": seconds, "imports of NumPy": ratio})
    return report.finish()


def processor_seconds(code: str) -> float:
    """Measure the user and system time that a fresh process takes to run `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code + TELL],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stderr)

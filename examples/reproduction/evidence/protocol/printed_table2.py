"""Table 2 as the paper prints it: means and standard errors of the 1-NN error, in percent."""

from __future__ import annotations

from .tasks import TASKS

PRINTED_ROWS = """
EUCLIDEAN     9.58 0.73   12.93 0.83  23.60 0.89  27.15 0.75  14.11 1.07  32.94 0.65
GDM           8.95 0.71   11.52 0.77  20.82 0.82  22.89 1.08  11.86 0.83  30.73 0.59
NCA           10.32 0.83  15.03 1.12  26.68 0.82  32.97 1.31  14.63 1.09  32.95 0.65
LMNN          9.81 0.79   14.83 0.97  22.25 0.75  24.00 1.34  13.86 0.84  32.02 0.60
ITML          5.57 0.53   8.22 0.66   20.35 0.64  22.04 0.80  9.60 0.49   31.21 0.73
LDM           7.27 0.72   17.21 1.41  24.54 0.92  21.22 0.93  14.85 0.92  34.33 0.60
MFDA          6.58 0.54   11.55 1.03  23.66 0.91  23.61 1.00  11.21 0.80  31.64 0.62
SERAPH_none   6.21 0.48   8.13 0.58   19.70 0.43  20.25 0.64  11.39 0.49  29.86 0.61
SERAPH_post   4.79 0.37   7.46 0.51   19.64 0.45  19.98 0.67  11.33 0.50  29.87 0.57
SERAPH_proj   5.79 0.54   7.39 0.50   19.53 0.46  20.94 0.64  9.61 0.49   30.43 0.65
SERAPH_hyper  5.31 0.43   7.38 0.49   19.33 0.42  20.15 0.63  10.04 0.52  30.02 0.63

EUCLIDEAN     36.63 0.80  28.43 0.60  49.17 0.50  39.30 0.39  10.42 0.67  37.30 0.81
GDM           37.62 0.77  -     -     -     -     -     -     -     -     -     -
NCA           37.55 0.84  28.39 0.60  57.01 0.82  49.21 0.66  10.42 0.67  37.75 0.92
LMNN          36.43 0.78  28.93 0.61  48.12 0.57  43.68 0.58  9.99 0.71   36.49 0.82
ITML          35.86 0.74  27.40 0.65  47.40 0.60  39.44 0.57  9.94 0.69   40.83 0.93
LDM           47.19 1.51  32.52 0.85  59.13 0.73  43.18 0.53  14.54 1.41  45.53 1.16
MFDA          42.52 0.82  28.82 0.62  52.13 0.59  37.78 0.50  9.35 0.72   42.39 0.92
SERAPH_none   36.08 0.75  27.41 0.60  47.29 0.58  38.36 0.55  9.97 0.71   36.44 0.84
SERAPH_post   35.79 0.75  27.37 0.60  47.12 0.58  38.20 0.55  10.98 0.79  36.45 0.84
SERAPH_proj   36.01 0.75  26.17 0.57  47.42 0.62  35.42 0.54  9.28 0.72   36.55 0.80
SERAPH_hyper  32.79 0.77  25.26 0.56  44.89 0.58  33.41 0.47  7.61 0.57   35.71 0.84
"""


def _parse(rows: str) -> dict[tuple[str, str], tuple[float, float]]:
    upper, lower = rows.strip().split("\n\n")
    names = list(TASKS)
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for block, tasks in ((upper, names[:6]), (lower, names[6:])):
        for line in block.splitlines():
            method, *cells = line.split()
            for task, mean, error in zip(tasks, cells[::2], cells[1::2], strict=True):
                if mean != "-":
                    found[method, task] = float(mean), float(error)
    return found


PRINTED = _parse(PRINTED_ROWS)
"""(row of Table 2, task) -> (mean, standard error); GDM has no entry where the paper has a dash."""

"""`read_problem`: problems of CVXPY from the files of linear, quadratic and conic libraries."""

from __future__ import annotations

from pathlib import Path

import cvxpy as cp

from .conic_files import read_cbf, read_sdpa
from .linear_files import read_lp, read_mps

READERS = {
    ".mps": read_mps,
    ".qps": read_mps,
    ".lp": read_lp,
    ".dat-s": read_sdpa,
    ".cbf": read_cbf,
}
"""What reads the files with each ending."""


def read_problem(path: str | Path) -> cp.Problem:
    """Read a convex problem from a file of one of the formats of the field's libraries.

    ========== ==================================================================================
    ending     what is read
    ========== ==================================================================================
    .mps .qps  linear and quadratic programs, in free or fixed format, with RANGES, BOUNDS,
               OBJSENSE, QUADOBJ, QMATRIX and QSECTION
    .lp        linear and quadratic programs in the LP format, each row and each bound on a new line
    .dat-s     SDPA's sparse format: minimize c'x subject to x_1 F_1 + ... + x_m F_m - F_0 >> 0
    .cbf       the Conic Benchmark Format: cones F, L=, L+, L-, Q, QR, EXP and POW, and PSD
    ========== ==================================================================================

    Each may be compressed by gzip, with .gz at the end of its name. The numbers are the doubles
    nearest to the file's; the bounds that RANGES define are rounded sums of two of them. If an MPS
    file has several sets of RHS, RANGES or BOUNDS, the first one counts. Bounds of 1e20 or more
    count as infinite.

    Parameters
    ----------
    path : str or Path
        The file; its ending says the format.

    Returns
    -------
    cvxpy.Problem
        A problem with few variables and constraints, whatever the size of the file, since CVXPY
        would take a thousand times as long with one constraint for each row. The `label` of a
        constraint names its part of the file, and `entry_names` of a variable or a constraint lists
        the file's names of its entries, in their order; in a format without names they are numbers.

    Raises
    ------
    ValueError
        If the file is malformed, or has integer variables or cones that are not supported; the
        message gives the line and a cure.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from seraph_cvx.proof import certify_problem, read_problem
    >>> text = '''NAME
    ... ROWS
    ...  N cost
    ...  G demand
    ... COLUMNS
    ...  coal cost 2 demand 1
    ...  wind cost 1 demand 1
    ... RHS
    ...  RHS demand 3
    ... BOUNDS
    ...  UP BND wind 2
    ... ENDATA'''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "energy.mps"
    ...     _ = path.write_text(text)
    ...     problem = read_problem(path)
    >>> certificate = certify_problem(problem)
    >>> bool(certificate.lower <= 4.0 <= certificate.upper)
    True
    >>> for constraint in problem.constraints:
    ...     print(constraint.label, constraint.entry_names)
    rows at least ('demand',)
    upper bounds ('wind',)
    lower bounds ('coal', 'wind')
    """
    path = Path(path)
    ending = path.name.lower().removesuffix(".gz")
    for known, reader in READERS.items():
        if ending.endswith(known):
            return reader(path)
    raise ValueError(
        f"{path}: the ending must say the format: {', '.join(READERS)}, or one of these and .gz."
    )

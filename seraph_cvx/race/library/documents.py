"""The documents of an exported library: a README with a reader, and a table of the instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...display.result_table import ResultTable

READER = """\
import numpy as np


def value(file, A):
    p = {"manifold_term": 0, "ridge": 0, "prior": 0, "sparse": 0, "log_det": 0, **np.load(file)}
    v = np.subtract(*p["points"][p["pairs"].T])
    s = np.sum(v @ A * v, axis=1) - p["threshold"]
    f = p["weights"] @ (np.logaddexp(0, -s) + p["similar"] * s)
    f += p["trace_weight"] * np.trace(A) + np.sum(p["manifold_term"] * A)
    f += p["ridge"] / 2 * np.sum((A - p["prior"]) ** 2)
    f += p["sparse"] * (np.sum(np.abs(A)) - np.trace(np.abs(A)))
    return f + (p["log_det"] and p["log_det"] * (np.trace(A) - np.linalg.slogdet(A)[1] - len(A)))
"""
"""The objective of an instance at a matrix, in ten lines that need NumPy alone."""

_README = """\
# {count} M-steps with proven optimal values

Each instance is a convex program over a symmetric PSD matrix A, the M-step of SERAPH (metric
learning), as four files:

| file | content |
| --- | --- |
| NAME.npz | the definition: plain arrays of doubles, whose values are exact |
| NAME.cbf | the same as a cone program (PSD, exponential cones), Conic Benchmark Format 3 |
| NAME.json | sizes, rank of the optimum, and [lower, upper], which holds the optimal value |
| NAME.optimum.npy | a factor L; upper is above the objective at LL' |

[library.md](library.md) lists them, from easy to nasty. `sha256sum --check SHA256SUMS` checks the
files. The widest interval has a relative width of {widest:.1e}.

## The objective

With v_k the difference of the two points of pair k, s_k = v_k'Av_k - threshold, c_k its weight and
q_k the number in `similar` (1 similar, 0 dissimilar, between them a soft label):

    minimize  sum_k c_k [log(1 + e^(-s_k)) + q_k s_k]
              + trace_weight tr(A) + <manifold_term, A> + penalties

The penalties are of these arrays, where the file has them:

| array | meaning |
| --- | --- |
| ridge, prior | ridge / 2 times the squared Frobenius norm of A - prior |
| sparse | sparse times the sum of abs(A_ij) over i != j |
| log_det | log_det (tr A - log det A - m) |
| trace_bound | tr A <= trace_bound |
| upper_bound | upper_bound - A is PSD |
| diagonal | A is diagonal |
| linear_matrices B, linear_bounds t | <B_i, A> <= t_i + e_i |
| linear_tolerance | e_i / (abs(t_i) + Frobenius norm of B_i) |

In ten lines, for a matrix A that satisfies the constraints:

```python
{reader}```

and the optimum that is in the folder:

```python
L = np.load("{first}.optimum.npy")
print(value("{first}.npz", L @ L.T))
```

## The proof

For numbers r_k in [0, 1] such that R + sum_k c_k (q_k - r_k) v_k v_k' is PSD, R the linear terms,
the sum of c_k [H(r_k) + threshold (r_k - q_k)], H the entropy in nats, is below the objective at
every PSD matrix; a penalty adds a matrix and takes off its conjugate. `lower` is such a sum and
`upper` the objective at LL', both enclosed in ball arithmetic (python-flint, 128 bits), and the PSD
matrix shown to be so by a Cholesky factorization of balls. No solver's word is in it. To prove an
interval again, from the arrays and L:

    from seraph_cvx.certificate.proof import prove
    from seraph_cvx.race.library.instance_file import read_instance
    prove(read_instance("NAME.npz"), L @ L.T).enclosure

The points of the suite full are short binary fractions, so the cone program has the products of
their differences exactly; the sums of its linear term are rounded to doubles.
"""


def readme(entries: Sequence[dict[str, Any]]) -> str:
    """The README of an exported library, with the reader in ten lines."""
    return _README.format(
        count=len(entries),
        widest=max(entry["relative_width"] for entry in entries),
        first=max(entries[:5], key=lambda entry: int(entry["rank"]))["instance"],
        reader=READER,
    )


def library_table(entries: Sequence[dict[str, Any]]) -> str:
    """The instances as a table in Markdown: sizes, why each is nasty, the proven interval."""
    rows = [
        {
            "instance": entry["instance"],
            "n": entry["n_points"],
            "m": entry["n_features"],
            "pairs": entry["n_similar"] + entry["n_dissimilar"] + entry["n_unlabeled"],
            "rank": entry["rank"],
            "why": entry["why"],
            "optimal value, at least": repr(entry["lower"]),
            "at most": repr(entry["upper"]),
            "SHA-256 of .npz": entry["npz_sha256"][:12],
        }
        for entry in entries
    ]
    cones = sum(entry["exponential_cones"] for entry in entries)
    note = (
        "n points, m features; rank of the optimum (eigenvalues above 1e-7 of the largest). A pair "
        f"has three scalar variables and two exponential cones, {cones} cones in all; A is a PSD "
        "variable of order m. Intervals are proved in ball arithmetic, rounding included."
    )
    title = f"{len(rows)} M-steps, from easy to nasty, with proven optimal values"
    return ResultTable(title, rows, [note]).to_markdown() + "\n"

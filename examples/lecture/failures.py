"""The problems of chapter 10: some with nothing wrong in them, and a gallery of failures."""

from __future__ import annotations

import math
from typing import NamedTuple


class Example(NamedTuple):
    """A problem to certify: its optimal value where one knows it, and the code of a student."""

    name: str
    why: str
    truth: float | None
    code: str


WELL_POSED = (
    Example(
        "A linear program",
        "Two products, three limits.",
        11.0,
        """z = cp.Variable(2, nonneg=True)
problem = cp.Problem(
    cp.Maximize(3 * z[0] + 2 * z[1]),
    [z[0] + z[1] <= 4, z[0] + 3 * z[1] <= 6, z[0] <= 3],
)""",
    ),
    Example(
        "A point in a disk",
        "The point of a disk that is closest to a point outside.",
        3.0,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(cp.norm(z - [3, 4])), [cp.norm(z) <= 2])""",
    ),
    Example(
        "Maximum entropy",
        "A die whose mean is 4.5.",
        None,
        """z = cp.Variable(6)
problem = cp.Problem(
    cp.Maximize(cp.sum(cp.entr(z))),
    [cp.sum(z) == 1, np.arange(1, 7) @ z == 4.5],
)""",
    ),
    Example(
        "The smallest trace",
        "The problem of section 10.2.",
        1.5,
        """A = cp.Variable((3, 3), PSD=True)
problem = cp.Problem(
    cp.Minimize(cp.trace(A)),
    [A[0, 1] + A[1, 2] == 1, A[0, 2] == 0.5],
)""",
    ),
)

GALLERY = (
    Example(
        "No interior",
        "A zero on the diagonal of a PSD matrix makes its whole row zero. So the feasible set is a "
        "single matrix, without an interior, and the optimal value is 0. But a diagonal entry of "
        "10⁻¹⁰ would permit 10⁻⁵ beside it: an error in the constraint comes back as its square "
        "root.",
        0.0,
        """A = cp.Variable((2, 2), PSD=True)
problem = cp.Problem(cp.Maximize(A[0, 1]), [A[1, 1] == 0, A[0, 0] == 1])""",
    ),
    Example(
        "No interior, exponential cone",
        "The left side of the constraint is at least 2, and equal to 2 only at 0. So 0 is the only "
        "feasible point, and a violation too small to notice moves *z* by its square root.",
        0.0,
        """z = cp.Variable()
problem = cp.Problem(cp.Minimize(z), [cp.exp(z) + cp.exp(-z) <= 2])""",
    ),
    Example(
        "Unattained",
        "The constraint says *z*₁ > 0 and *z*₂ ≥ 1/*z*₁. The infimum is 0, and no point has that "
        "value: a solver walks toward infinity until it gives up. That does not hinder the proof, "
        "which needs a point for each bound, but not an optimal one.",
        0.0,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(z[0]), [cp.bmat([[z[0], 1], [1, z[1]]]) >> 0])""",
    ),
    Example(
        "Positive gap",
        "The first equation makes the second row of *A* zero, so that the second equation says "
        "that the objective is 1. But no multiplier proves more than 0: the dual slack has a zero "
        "on its diagonal too, and that forces the multiplier of the second equation, which is "
        "the bound, to be 0.",
        1.0,
        """A = cp.Variable((3, 3), PSD=True)
problem = cp.Problem(
    cp.Minimize(A[0, 0]),
    [A[1, 1] == 0, A[0, 0] + 2 * A[1, 2] == 1],
)""",
    ),
    Example(
        "Badly scaled",
        "Coefficients from 10⁻⁶ to 10⁶. A tolerance that is relative to the largest number in "
        "sight demands nothing of the small ones.",
        999000.001,
        """z = cp.Variable(3, nonneg=True)
problem = cp.Problem(
    cp.Minimize(1e6 * z[0] + z[1] + 1e-6 * z[2]),
    [cp.sum(z) >= 1e6, 1e6 * z[0] + z[1] >= 1, z[2] <= 1e3],
)""",
    ),
    Example(
        "Barely infeasible",
        "In the unit disk the sum of both coordinates is at most the square root of 2, which is "
        "1.41421 and less than 1.4143. Whether that passes for feasible depends on the solver's "
        "tolerance and scaling.",
        math.inf,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(cp.sum(z)), [cp.norm(z) <= 1, cp.sum(z) >= 1.4143])""",
    ),
    Example(
        "Weakly infeasible",
        "A zero on the diagonal with a 1 beside it: no *z* is feasible. But with 10⁻⁹ instead of "
        "the zero a large *z* would be, so the problem is infeasible without a ray that proves it; "
        "what can be proved is a lower bound as high as you like.",
        math.inf,
        """z = cp.Variable()
problem = cp.Problem(cp.Minimize(z), [cp.bmat([[z, 1], [1, 0]]) >> 0])""",
    ),
    Example(
        "Unbounded along a ray",
        "The first coordinate can fall forever: nothing bounds it from below. A feasible point and "
        "a ray of descent prove that.",
        -math.inf,
        """z = cp.Variable(2)
problem = cp.Problem(cp.Minimize(z[0] - cp.log(z[1])))""",
    ),
    Example(
        "Unbounded, slowly",
        "The logarithm has no bound, but it grows more slowly than any linear function. So no ray "
        "can prove it; yet every answer is refuted by a better point.",
        math.inf,
        """z = cp.Variable()
problem = cp.Problem(cp.Maximize(cp.log(z)))""",
    ),
)

EXAMPLES = {example.name: example.code for example in (*WELL_POSED, *GALLERY)}
"""The code of each, by name."""

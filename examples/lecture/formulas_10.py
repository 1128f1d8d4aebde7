"""The formulas of chapter 10: what a certificate of any convex problem says."""

from seraph_cvx.display.formulas import Formula

SMALLEST_TRACE = Formula(
    "The smallest trace",
    "",
    r"\min_{A \succeq 0} \operatorname{tr}(A)"
    "\n"
    r"A_{12} + A_{23} = 1 , \quad A_{13} = \frac{1}{2}",
)

TRACE_BOUND = Formula(
    "The dual slack, and what it proves",
    "",
    r"M(\lambda) = I - \lambda_1 B_1 - \lambda_2 B_2"
    "\n"
    r"\operatorname{tr}(A) = \langle M(\lambda), A \rangle + 2 \lambda_1 + \lambda_2",
    "B_1 has ones at (1, 2), (2, 1), (2, 3) and (3, 2), B_2 at (1, 3) and (3, 1)",
)

TRACE_SQUARES = Formula(
    "The slack as a sum of squares",
    "",
    r"v^\top M(\lambda) v = \frac{1 + \lambda_2}{2} (v_1 - v_3)^2"
    "\n"
    r"+ (v_2 - \lambda_1 (v_1 + v_3))^2"
    "\n"
    r"+ \frac{1 - \lambda_2 - 2 \lambda_1^2}{2} (v_1 + v_3)^2",
)

SHRUNK = Formula(
    "Toward the anchor 0",
    "",
    r"M(\tau \lambda) = \tau M(\lambda) + (1 - \tau) I",
)

CLAIM = Formula(
    "What i digits mean",
    "",
    r"|\xi - \operatorname{optimum}| \leq 10^{-i} \max(1, |\xi|)",
    "xi: the claimed value",
)

ERROR = Formula(
    "What is proved of the error",
    "",
    r"\chi_1 \leq \operatorname{error} \leq \chi_2",
    "the error: the larger one of the value's relative error and of the worst violation",
)

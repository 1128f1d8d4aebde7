"""The formulas of chapter 7, convex duality."""

from seraph_cvx.display.formulas import Formula

CONE_CONSTRAINT = Formula(
    "A problem with a cone",
    "",
    r"p^\star = \inf_{x} f_0(x)"
    "\n"
    r"h - F x \in \mathcal{K}",
    "𝒦: a closed convex cone; x: in the domain of f_0",
)

GENERAL_LAGRANGIAN = Formula(
    "The Lagrangian, and the dual function",
    "",
    r"L(x, \lambda) = f_0(x) - \langle \lambda, h - F x \rangle"
    "\n"
    r"g(\lambda) = \inf_{x} L(x, \lambda)",
    "lambda: the multiplier; the infimum is over the whole domain of f_0",
)

ONE_NUMBER = Formula(
    "One variable, one inequality",
    "",
    r"L(x, \lambda) = (x - 2)^2 - \lambda (1 - x)"
    "\n"
    r"2 (x - 2) + \lambda = 0 \Rightarrow x = 2 - \frac{\lambda}{2}"
    "\n"
    r"g(\lambda) = \lambda - \frac{\lambda^2}{4}",
)

DUAL_CONE = Formula(
    "The dual cone",
    "",
    r"\lambda \in \mathcal{K}^* \Leftrightarrow \langle \lambda, u \rangle \geq 0"
    r" \quad \operatorname{for} \operatorname{all} u \in \mathcal{K}",
)

GENERAL_WEAK_DUALITY = Formula(
    "Weak duality",
    "",
    r"g(\lambda) \leq L(x, \lambda)"
    "\n"
    r"= f_0(x) - \langle \lambda, h - F x \rangle \leq f_0(x)",
    "x: feasible; lambda: in the dual cone",
)

CONE_PROGRAM = Formula(
    "The cone program",
    "",
    r"\min_{x} c^\top x , \quad h - F x \in \mathcal{K}"
    "\n"
    r"L(x, \lambda) = (c + F^\top \lambda)^\top x - \langle h, \lambda \rangle",
)

CONE_PROGRAM_DUAL = Formula(
    "Its dual",
    "",
    r"\max_{\lambda \in \mathcal{K}^*} -\langle h, \lambda \rangle , \quad F^\top \lambda + c = 0",
)

CONE_PROGRAM_GAP = Formula(
    "Its gap",
    "",
    r"c^\top x + \langle h, \lambda \rangle = \langle \lambda, h - F x \rangle \geq 0",
    "x and lambda: feasible",
)

LINE_BELOW = Formula(
    "A line below all reachable points",
    "",
    r"t \geq f_0(x) \geq g(\lambda) + \langle \lambda, h - F x \rangle"
    "\n"
    r"\geq g(\lambda) - \langle \lambda, u \rangle",
    "because lambda is in the dual cone, and h + u - Fx in the cone",
)

SEPARATION = Formula(
    "A plane between the two",
    "",
    r"\langle \lambda, u \rangle + \mu t \geq \mu p^\star"
    r" \quad \operatorname{for} \operatorname{all} \operatorname{reachable} (u, t)",
)

SUPPORT = Formula(
    "What the plane says of every x",
    "",
    r"u = F x - h , \quad t = f_0(x)"
    "\n"
    r"p^\star \leq f_0(x) - \langle \lambda, h - F x \rangle = L(x, \lambda)",
)

TWO_NUMBERS = Formula(
    "Two numbers",
    "",
    r"\min_{x} x_1 + x_2 , \quad"
    r" \begin{pmatrix} x_1 & 1 \\ 1 & x_2 \end{pmatrix} \succeq 0",
)

PROGRAM_WITH_A_GAP = Formula(
    "(a) A gap",
    "",
    r"\min_{x} x_1 , \quad"
    r" \begin{pmatrix} x_1 & 0 & 0 \\ 0 & 0 & (1 - x_1) / 2 \\"
    r" 0 & (1 - x_1) / 2 & x_2 \end{pmatrix} \succeq 0",
)

NOT_ATTAINED = Formula(
    "(b) An optimum that nobody attains",
    "",
    r"\min_{x} x_1 , \quad"
    r" \begin{pmatrix} x_1 & 1 \\ 1 & x_2 \end{pmatrix} \succeq 0",
)

WEAKLY_INFEASIBLE = Formula(
    "(c) Weakly infeasible",
    "",
    r"\min_{x} x , \quad \begin{pmatrix} x & 1 \\ 1 & 0 \end{pmatrix} \succeq 0",
)

GAP_LAGRANGIAN = Formula(
    "The Lagrangian of (a)",
    "",
    r"L(x, Z) = x_1 (1 - Z_{11} + Z_{23})"
    "\n"
    r"- x_2 Z_{33} - Z_{23}",
)

BOUNDED_MULTIPLIER = Formula(
    "Multipliers for a bounded variable",
    "",
    r"Z_{11} = 0 , \quad Z_{23} = -1 , \quad Z_{33} = \delta , \quad"
    r" Z_{22} = \frac{1}{\delta}"
    "\n"
    r"L(x, Z) = 1 - \delta x_2",
)

STRICT_SEPARATION = Formula(
    "A plane with room to spare",
    "",
    r"\inf (\langle \lambda, u \rangle + \mu t) > \mu (p^\star - \delta)",
    "the infimum is over all reachable (u, t)",
)

DUAL_OF_THE_DUAL = Formula(
    "The dual function of the dual",
    "",
    r"\max_{p \in [0,1]^N} D(p) + \langle A, M(p) \rangle = f(A)",
)

NO_SLATER_POINT = Formula(
    "No slack along u",
    "",
    r"u^\top M(p) u = \sum_{k} (c_k p_k - b_k) (v_k^\top u)^2"
    "\n"
    r"\leq \sum_{k} (c_k - b_k) (v_k^\top u)^2 = u^\top M(1) u = 0",
)

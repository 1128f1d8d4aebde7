"""The formulas of chapter 7, convex duality."""

from seraph_cvx.display.formulas import Formula

CONE_CONSTRAINT = Formula(
    "A problem with a cone",
    "",
    r"g^* = \inf_{z} g(z)"
    "\n"
    r"d - T z \in \mathcal{K}",
    "𝒦: a closed convex cone; z: in the domain of g",
)

GENERAL_LAGRANGIAN = Formula(
    "The Lagrangian, and the dual function",
    "",
    r"\Lambda(z, \zeta) = g(z) - \langle \zeta, d - T z \rangle"
    "\n"
    r"D(\zeta) = \inf_{z} \Lambda(z, \zeta)",
    "zeta: the multiplier; the infimum is over the whole domain of g",
)

ONE_NUMBER = Formula(
    "One variable, one inequality",
    "",
    r"\Lambda(z, \zeta) = (z - 2)^2 - \zeta (1 - z)"
    "\n"
    r"2 (z - 2) + \zeta = 0 \Rightarrow z = 2 - \frac{\zeta}{2}"
    "\n"
    r"D(\zeta) = \zeta - \frac{\zeta^2}{4}",
)

DUAL_CONE = Formula(
    "The dual cone",
    "",
    r"\zeta \in \mathcal{K}^* \Leftrightarrow \langle \zeta, \chi \rangle \geq 0"
    r" \quad \operatorname{for} \operatorname{all} \chi \in \mathcal{K}",
)

GENERAL_WEAK_DUALITY = Formula(
    "Weak duality",
    "",
    r"D(\zeta) \leq \Lambda(z, \zeta)"
    "\n"
    r"= g(z) - \langle \zeta, d - T z \rangle \leq g(z)",
    "z: feasible; zeta: in the dual cone",
)

CONE_PROGRAM = Formula(
    "The cone program",
    "",
    r"\min_{z} g^\top z , \quad d - T z \in \mathcal{K}"
    "\n"
    r"\Lambda(z, \zeta) = (g + T^\top \zeta)^\top z - \langle d, \zeta \rangle",
)

CONE_PROGRAM_DUAL = Formula(
    "Its dual",
    "",
    r"\max_{\zeta \in \mathcal{K}^*} -\langle d, \zeta \rangle , \quad T^\top \zeta + g = 0",
)

CONE_PROGRAM_GAP = Formula(
    "Its gap",
    "",
    r"g^\top z + \langle d, \zeta \rangle = \langle \zeta, d - T z \rangle \geq 0",
    "z and zeta: feasible",
)

LINE_BELOW = Formula(
    "A line below all reachable points",
    "",
    r"\xi \geq g(z) \geq D(\zeta) + \langle \zeta, d - T z \rangle"
    "\n"
    r"\geq D(\zeta) - \langle \zeta, \chi \rangle",
    "because zeta is in the dual cone, and d + chi - Tz in the cone",
)

SEPARATION = Formula(
    "A plane between the two",
    "",
    r"\langle \zeta, \chi \rangle + \theta \xi \geq \theta g^*"
    r" \quad \operatorname{for} \operatorname{all} \operatorname{reachable} (\chi, \xi)",
)

SUPPORT = Formula(
    "What the plane says of every z",
    "",
    r"\chi = T z - d , \quad \xi = g(z)"
    "\n"
    r"g^* \leq g(z) - \langle \zeta, d - T z \rangle = \Lambda(z, \zeta)",
)

GAP_LAGRANGIAN = Formula(
    "The Lagrangian of (a)",
    "",
    r"\Lambda(z, \zeta) = z_1 (1 - \zeta_{11} + \zeta_{23})"
    "\n"
    r"- z_2 \zeta_{33} - \zeta_{23}",
)

BOUNDED_MULTIPLIER = Formula(
    "Multipliers for a bounded variable",
    "",
    r"\zeta_{11} = 0 , \quad \zeta_{23} = -1 , \quad \zeta_{33} = \delta , \quad"
    r" \zeta_{22} = \frac{1}{\delta}"
    "\n"
    r"\Lambda(z, \zeta) = 1 - \delta z_2",
)

STRICT_SEPARATION = Formula(
    "A plane with room to spare",
    "",
    r"\inf (\langle \zeta, \chi \rangle + \theta \xi) > \theta (g^* - \delta)",
    "the infimum is over all reachable (chi, xi)",
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

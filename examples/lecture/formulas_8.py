"""The formulas of chapter 8: cones, their duals, and the conic form of the M-step."""

from seraph_cvx.display.formulas import Formula

CONIC_PROGRAM = Formula(
    "What a solver is given",
    "",
    r"\min_{z} g^\top z \quad \operatorname{with} \quad d - T z \in \mathcal{K}",
    "g, d: vectors; T: a matrix; 𝒦: a product of a few kinds of cones",
)

CONVEX_CONE = Formula(
    "A convex cone",
    "",
    r"z , z' \in \mathcal{K} , \quad \theta \geq 0"
    "\n"
    r"\Rightarrow \theta z \in \mathcal{K} , \quad z + z' \in \mathcal{K}",
)

DUAL_CONE = Formula(
    "The dual cone, in coordinates",
    "",
    r"\zeta \in \mathcal{K}^* \Leftrightarrow \zeta^\top z \geq 0 \quad \operatorname{for}"
    r" \operatorname{all} z \in \mathcal{K}",
)

SECOND_ORDER_CONE = Formula(
    "The second-order cone",
    "",
    r"(\xi, z) \in \mathcal{Q} \Leftrightarrow \|z\| \leq \xi",
    "xi: a number; z: a vector of any length",
)

SELF_DUAL = Formula(
    "The second-order cone is its own dual",
    "",
    r"\|z\| \leq \xi , \quad \|\zeta\| \leq \chi \Rightarrow"
    "\n"
    r"\xi \chi + z^\top \zeta \geq \xi \chi - \|z\| \|\zeta\| \geq 0",
    "(xi, z) and (chi, zeta): two points of the cone",
)

TWO_BY_TWO = Formula(
    "Metrics of two features",
    "",
    r"A_{11} = \xi + z_1 , \quad A_{22} = \xi - z_1 , \quad A_{12} = z_2"
    "\n"
    r"\alpha_1 = \xi - \|z\| , \quad \alpha_2 = \xi + \|z\|"
    "\n"
    r"A \succeq 0 \Leftrightarrow (\xi, z) \in \mathcal{Q}",
    "xi: half the trace of A; alpha_1, alpha_2: its eigenvalues",
)

TWO_PRODUCTS = Formula(
    "Their inner product",
    "",
    r"\langle A, B \rangle = 2 (\xi \chi + z^\top \zeta)",
    "(xi, z) belongs to A, (chi, zeta) to B",
)

EXPONENTIAL_CONE = Formula(
    "The exponential cone",
    "",
    r"z \in \mathcal{E} \Leftrightarrow z_2 > 0 , \quad z_2 e^{z_1 / z_2} \leq z_3"
    "\n"
    r"\operatorname{or} \quad z_2 = 0 , \quad z_1 \leq 0 , \quad z_3 \geq 0",
)

HALF_SPACES = Formula(
    "The exponential cone from half-spaces",
    "",
    r"z_2 > 0 \Rightarrow z_2 e^{z_1 / z_2} = \max_{\theta} e^\theta (z_1 + (1 - \theta) z_2)"
    "\n"
    r"z \in \mathcal{E} \Leftrightarrow z_2 \geq 0 \operatorname{and}"
    r" \operatorname{for} \operatorname{all} \theta"
    "\n"
    r"z_3 \geq e^\theta (z_1 + (1 - \theta) z_2)",
    "the maximum is at theta = z_1 / z_2",
)

LEAST_PRODUCT = Formula(
    "The least inner product",
    "",
    r"\inf_{z_1} (\zeta_1 z_1 + \zeta_2 + \zeta_3 e^{z_1})"
    "\n"
    r"= \zeta_1 \ln\left(\frac{-\zeta_1}{\zeta_3}\right) + \zeta_2 - \zeta_1",
    "for zeta_1 < 0 < zeta_3",
)

EXPONENTIAL_DUAL = Formula(
    "The dual of the exponential cone",
    "",
    r"\zeta \in \mathcal{E}^* \Leftrightarrow \zeta_1 < 0 \operatorname{and}"
    r" -\zeta_1 e^{\zeta_2 / \zeta_1} \leq e \zeta_3"
    "\n"
    r"\operatorname{or} \quad \zeta_1 = 0 , \quad \zeta_2 \geq 0 , \quad \zeta_3 \geq 0",
    "e: Euler's number",
)

DUAL_AS_IMAGE = Formula(
    "The dual cone in terms of the cone",
    "",
    r"\zeta \in \mathcal{E}^* \Leftrightarrow (\zeta_1 - \zeta_2, -\zeta_1, \zeta_3)"
    r" \in \mathcal{E}",
)

LOGISTIC_CONES = Formula(
    "The logistic term in cones",
    "",
    r"\ln(1 + e^s) \leq \xi \Leftrightarrow \operatorname{there} \operatorname{are}"
    r" \chi_1 , \chi_2 \operatorname{with}"
    "\n"
    r"(-\xi, 1, \chi_1) \in \mathcal{E} , \quad (s - \xi, 1, \chi_2) \in \mathcal{E}"
    "\n"
    r"\chi_1 + \chi_2 \leq 1",
)

BOTH_DIRECTIONS = Formula(
    "One line for both directions",
    "",
    r"e^{-\xi} + e^{s - \xi} = e^{-\xi} (1 + e^s)",
)

CONIC_M_STEP = Formula(
    "The M-step in cones",
    "(11)",
    r"\min_{A \succeq 0, \xi, \chi} \sum_{k} c_k \xi_k + \langle R - G, A \rangle + \eta \beta"
    "\n"
    r"(-\xi_k, 1, \chi_{k1}) \in \mathcal{E} , \quad (s_k - \xi_k, 1, \chi_{k2}) \in \mathcal{E}"
    "\n"
    r"\chi_{k1} + \chi_{k2} \leq 1 , \quad s_k = v_k^\top A v_k - \eta",
    "xi_k: a bound on the logistic term of pair k",
)

ENTROPY_CONE = Formula(
    "The entropy in a cone",
    "",
    r"-p \ln p \geq \xi \Leftrightarrow p e^{\xi / p} \leq 1 \Leftrightarrow"
    r" (\xi, p, 1) \in \mathcal{E}",
    "for p > 0",
)

SIZES = Formula(
    "The size of the M-step for a solver",
    "",
    r"\operatorname{variables} : \quad 3 N + \frac{m (m + 1)}{2}"
    "\n"
    r"\operatorname{rows} : \quad 7 N + \frac{m (m + 1)}{2}",
    "N: the number of pairs; m: the number of features",
)

DUAL_SIZES = Formula(
    "The size of its dual",
    "",
    r"\operatorname{variables} : \quad 3 N"
    "\n"
    r"\operatorname{rows} : \quad 6 N + \frac{m (m + 1)}{2}",
)

TRIANGLE = Formula(
    "A symmetric matrix as a vector",
    "",
    r"z = (A_{11}, \sqrt{2} A_{12}, A_{22})"
    "\n"
    r"\zeta = (B_{11}, \sqrt{2} B_{12}, B_{22})"
    "\n"
    r"z^\top \zeta = A_{11} B_{11} + 2 A_{12} B_{12} + A_{22} B_{22} = \langle A, B \rangle",
)

PAIR_CONDITIONS = Formula(
    "What the multipliers of a pair satisfy",
    "",
    r"c_k + \zeta_1 + \zeta_1' = 0 , \quad \zeta_3 = \zeta_3'"
    "\n"
    r"\zeta_1 + \zeta_3 e^{-\xi_k} = 0 , \quad \zeta_1' + \zeta_3' e^{s_k - \xi_k} = 0",
    "zeta: the multiplier of (-xi_k, 1, chi_k1); zeta': of (s_k - xi_k, 1, chi_k2)",
)

PAIR_MULTIPLIERS = Formula(
    "The multipliers of a pair",
    "",
    r"\zeta_1 = -c_k (1 - p_k) , \quad \zeta_1' = -c_k p_k"
    "\n"
    r"p_k = \sigma(s_k)",
    "at the optimum",
)

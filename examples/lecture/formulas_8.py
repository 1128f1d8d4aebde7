"""The formulas of chapter 8: cones, their duals, and the conic form of the M-step."""

from seraph_cvx.display.formulas import Formula

CONIC_PROGRAM = Formula(
    "What a solver is given",
    "",
    r"\min_{x} c^\top x \quad \operatorname{with} \quad h - F x \in \mathcal{K}",
    "c, h: vectors; F: a matrix; 𝒦: a product of a few kinds of cones",
)

CONVEX_CONE = Formula(
    "A convex cone",
    "",
    r"x , x' \in \mathcal{K} , \quad \theta \geq 0"
    "\n"
    r"\Rightarrow \theta x \in \mathcal{K} , \quad x + x' \in \mathcal{K}",
)

DUAL_CONE = Formula(
    "The dual cone, in coordinates",
    "",
    r"\lambda \in \mathcal{K}^* \Leftrightarrow \lambda^\top x \geq 0 \quad \operatorname{for}"
    r" \operatorname{all} x \in \mathcal{K}",
)

SECOND_ORDER_CONE = Formula(
    "The second-order cone",
    "",
    r"(\xi, x) \in \mathcal{Q} \Leftrightarrow \|x\| \leq \xi",
    "xi: a number; x: a vector of any length",
)

SELF_DUAL = Formula(
    "The second-order cone is its own dual",
    "",
    r"\|x\| \leq \xi , \quad \|\lambda\| \leq \chi \Rightarrow"
    "\n"
    r"\xi \chi + x^\top \lambda \geq \xi \chi - \|x\| \|\lambda\| \geq 0",
    "(xi, x) and (chi, lambda): two points of the cone",
)

TWO_BY_TWO = Formula(
    "Metrics of two features",
    "",
    r"A_{11} = \xi + x_1 , \quad A_{22} = \xi - x_1 , \quad A_{12} = x_2"
    "\n"
    r"\alpha_1 = \xi - \|x\| , \quad \alpha_2 = \xi + \|x\|"
    "\n"
    r"A \succeq 0 \Leftrightarrow (\xi, x) \in \mathcal{Q}",
    "xi: half the trace of A; alpha_1, alpha_2: its eigenvalues",
)

TWO_PRODUCTS = Formula(
    "Their inner product",
    "",
    r"\langle A, B \rangle = 2 (\xi \chi + x^\top \lambda)",
    "(xi, x) belongs to A, (chi, lambda) to B",
)

EXPONENTIAL_CONE = Formula(
    "The exponential cone",
    "",
    r"x \in \mathcal{E} \Leftrightarrow x_2 > 0 , \quad x_2 e^{x_1 / x_2} \leq x_3"
    "\n"
    r"\operatorname{or} \quad x_2 = 0 , \quad x_1 \leq 0 , \quad x_3 \geq 0",
)

HALF_SPACES = Formula(
    "The exponential cone from half-spaces",
    "",
    r"x_2 > 0 \Rightarrow x_2 e^{x_1 / x_2} = \max_{\theta} e^\theta (x_1 + (1 - \theta) x_2)"
    "\n"
    r"x \in \mathcal{E} \Leftrightarrow x_2 \geq 0 \operatorname{and}"
    r" \operatorname{for} \operatorname{all} \theta"
    "\n"
    r"x_3 \geq e^\theta (x_1 + (1 - \theta) x_2)",
    "the maximum is at theta = x_1 / x_2",
)

LEAST_PRODUCT = Formula(
    "The least inner product",
    "",
    r"\inf_{x_1} (\lambda_1 x_1 + \lambda_2 + \lambda_3 e^{x_1})"
    "\n"
    r"= \lambda_1 \ln\left(\frac{-\lambda_1}{\lambda_3}\right) + \lambda_2 - \lambda_1",
    "for lambda_1 < 0 < lambda_3",
)

EXPONENTIAL_DUAL = Formula(
    "The dual of the exponential cone",
    "",
    r"\lambda \in \mathcal{E}^* \Leftrightarrow \lambda_1 < 0 \operatorname{and}"
    r" -\lambda_1 e^{\lambda_2 / \lambda_1} \leq e \lambda_3"
    "\n"
    r"\operatorname{or} \quad \lambda_1 = 0 , \quad \lambda_2 \geq 0 , \quad \lambda_3 \geq 0",
    "e: Euler's number",
)

DUAL_AS_IMAGE = Formula(
    "The dual cone in terms of the cone",
    "",
    r"\lambda \in \mathcal{E}^* \Leftrightarrow (\lambda_1 - \lambda_2, -\lambda_1, \lambda_3)"
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
    r"x = (A_{11}, \sqrt{2} A_{12}, A_{22})"
    "\n"
    r"\lambda = (B_{11}, \sqrt{2} B_{12}, B_{22})"
    "\n"
    r"x^\top \lambda = A_{11} B_{11} + 2 A_{12} B_{12} + A_{22} B_{22} = \langle A, B \rangle",
)

PAIR_CONDITIONS = Formula(
    "What the multipliers of a pair satisfy",
    "",
    r"c_k + \lambda_1 + \lambda_1' = 0 , \quad \lambda_3 = \lambda_3'"
    "\n"
    r"\lambda_1 + \lambda_3 e^{-\xi_k} = 0 , \quad \lambda_1' + \lambda_3' e^{s_k - \xi_k} = 0",
    "lambda: the multiplier of (-xi_k, 1, chi_k1); lambda': of (s_k - xi_k, 1, chi_k2)",
)

PAIR_MULTIPLIERS = Formula(
    "The multipliers of a pair",
    "",
    r"\lambda_1 = -c_k (1 - p_k) , \quad \lambda_1' = -c_k p_k"
    "\n"
    r"p_k = \sigma(s_k)",
    "at the optimum",
)

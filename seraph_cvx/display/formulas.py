"""The formulas that are shown to users, each written once, in LaTeX.

Pages and notebooks take `mathml`, files in ASCII the LaTeX itself.
The claims of the paper in ``theory/claims.py`` have their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from .mathml import to_mathml


@dataclass(frozen=True)
class Formula:
    """A formula in LaTeX, which may have several lines, and as MathML."""

    name: str
    equation: str  # its number in the paper, as "(11)"
    latex: str
    where: str = ""  # what the letters mean that the formula does not define

    @property
    def title(self) -> str:
        """The name, and the equation number where there is one."""
        return f"{self.name} {self.equation}".rstrip()

    @property
    def mathml(self) -> str:
        """The formula as MathML, one element for each line."""
        return "".join(map(to_mathml, self.latex.splitlines()))


# The model of a pair, the paper's objectives, and why they are convex or not

PAIRS = "y = 1 for a similar pair, y = -1 for a dissimilar one; "

WEIGHTS = (
    "v_k = x_i - x_j of pair k; c_k: mu if it is unlabeled, else its confidence, 1 by default; "
    "b_k: 0 if it is similar, c_k if dissimilar, mu q(-1) if unlabeled; "
    "Delta: the Laplacian of a graph of neighbors"
)

PROBABILITY = Formula(
    "The probability of a pair's label",
    "(8)",
    r"p^A(y | x, x') = \frac{1}{1 + \exp(y (\|x - x'\|_A^2 - \eta))}",
    f"{PAIRS}eta is the squared distance at which both are as likely",
)

M_STEP = Formula(
    "The M-step",
    "(11)",
    r"\max_{A \succeq 0} \mathcal{F}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} q_{ij}(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; q: the soft labels; F is concave",
)

M_STEP_ONE_TERM = Formula(
    "The M-step with one logistic term per pair",
    "(11)",
    r"\min_{A \succeq 0} f(A) = \sum_{k} c_k \ln(1 + e^{s_k}) - \langle G, A \rangle"
    r" + \eta \beta + \langle R, A \rangle"
    "\n"
    r"s_k = v_k^\top A v_k - \eta , \quad G = \sum_{k} b_k v_k v_k^\top , \quad"
    r" \beta = \sum_{k} b_k , \quad R = \lambda I + \nu X^\top \Delta X",
    WEIGHTS,
)

# The alternation of E-step and M-step, and what it descends

E_STEP = Formula(
    "The E-step",
    "(10)",
    r"q_{ij}(y) = \frac{p_{ij}^A(y)^{1 + \mu}}{\sum_{y'} p_{ij}^A(y')^{1 + \mu}}"
    "\n"
    r"q_{ij}(-1) = \sigma(a s_{ij}) , \quad a = 1 + \mu",
    "s_ij: the squared distance under A less eta; another sharpness a > 0 is not in the paper",
)

DESCENT = Formula(
    "What the alternation descends",
    "",
    r"J(q, A) = -\sum_{\mathcal{S} \cup \mathcal{D}} \ln p_{ij}^A(y_{ij}) + \langle R, A \rangle"
    r" + \mu \sum_{\mathcal{U}} \left(E_q[-\ln p_{ij}^A(y)]"
    r" - \frac{H(q_{ij})}{a}\right)",
    f"{PAIRS}H: the entropy in nats; a: the sharpness of the soft labels, 1 + mu in the paper",
)

# The dual of the M-step, and when the two agree

DUAL = Formula(
    "The dual of the M-step",
    "",
    r"\max_{p \in [0,1]^N} D(p) = \sum_{k} c_k H(p_k) - \eta (\sum_{k} c_k p_k - \beta)"
    "\n"
    r"M(p) = \sum_{k} c_k p_k v_k v_k^\top - G + R \succeq 0 , \quad"
    r" R = \lambda I + \nu X^\top \Delta X",
    f"H: the binary entropy in nats; {WEIGHTS}",
)

CRITICAL_TRACE_WEIGHT = Formula(
    "The critical trace weight",
    "",
    r"A = 0 \quad \operatorname{optimal} \Leftrightarrow \lambda \geq \max(0,"
    r" \lambda_{\max}(G - \sigma(-\eta) \sum_{k} c_k v_k v_k^\top - \nu X^\top \Delta X))",
    WEIGHTS,
)

# From a metric to a proof

CERTIFICATE = Formula(
    "The certificate of an M-step",
    "",
    r"D(p) \leq \inf_{B \succeq 0} f(B) \leq f(A)"
    "\n"
    r"\operatorname{gap} = f(A) - D(p)"
    "\n"
    r"\operatorname{relative} = \frac{\operatorname{gap}}{\max(1, \lvert f(A) \rvert)}",
    "p: any feasible point of the dual, however A was found",
)

ANCHORS = Formula(
    "Two dual points that are always feasible",
    "",
    r"M(1) = \sum_{k} (c_k - b_k) v_k v_k^\top + R \succeq 0 , \quad"
    r" M\left(\frac{b}{c}\right) = R \succeq 0"
    "\n"
    r"p_\tau = \tau p + (1 - \tau) 1 , \quad M(p_\tau) = \tau M(p) + (1 - \tau) M(1)",
    "1: the vector of ones; tau from 0 (the anchor) to 1 (p)",
)

ROUNDING = Formula(
    "One rounding, and h of them",
    "",
    r"\lvert \operatorname{rounded} - \operatorname{exact} \rvert"
    r" \leq 2^{-53} \lvert \operatorname{exact} \rvert , \quad"
    r" \gamma_h = \frac{h}{2^{53} - h}",
    "for each +, -, times or divided by, without underflow; a sum of products with h roundings in "
    "each is off by at most gamma_h times the sum of their absolute values",
)

# Ways to solve an M-step

FISTA = Formula(
    "FISTA",
    "",
    r"A_t = P\left(Y_t - \frac{1}{\ell} \nabla f(Y_t)\right)"
    "\n"
    r"Y_{t + 1} = A_t + \frac{\omega_t - 1}{\omega_{t + 1}} (A_t - A_{t - 1}) , \quad"
    r" \omega_{t + 1} = \frac{1 + \sqrt{1 + 4 \omega_t^2}}{2}",
    "P: the nearest PSD matrix; ell: a bound on the curvature of f; omega_1 = 1, Y_1 = A_0",
)

FORMULAS = tuple(each for each in list(globals().values()) if isinstance(each, Formula))
"""All of them."""

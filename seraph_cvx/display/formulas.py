"""The formulas that are shown to users, each written once, in LaTeX.

The command line takes `text`, files in ASCII take `ascii`, pages and notebooks take `mathml`. The
claims of the paper in ``theory/claims.py`` have their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from .mathml import LETTERS, to_mathml, to_text

IN_ASCII = {
    **{sign: name for name, sign in LETTERS.items() if "α" <= sign.lower() <= "ω"},
    "⪰ 0": "PSD", "≻ 0": "PD", "∑": "sum", "∪": "u", "∈": "in", "≤": "<=", "≥": ">=", "⇔": "<=>",
    "⇒": "=>", "⟨": "<", "⟩": ">", "‖": "||", "′": "'", "^⊤": "'", "𝒮": "S", "𝒟": "D", "𝒰": "U",
    "ℒ": "L", "ℱ": "F", "ℓ": "ell ", "∇": "nabla ", "√": "sqrt", "←": "<-", "∘": "op",
}  # fmt: skip


@dataclass(frozen=True)
class Formula:
    """A formula in LaTeX, a line of it a line of text, and the notations derived from that."""

    name: str
    equation: str  # its number in the paper, as "(11)"
    latex: str  # in the subset that `seraph_cvx.display.mathml` reads
    where: str = ""  # what the letters mean that the formula does not define

    @property
    def title(self) -> str:
        """The name, and the equation number where there is one."""
        return f"{self.name} {self.equation}".rstrip()

    @property
    def mathml(self) -> str:
        """The formula as MathML, one element for each line."""
        return "".join(map(to_mathml, self.latex.splitlines()))

    @property
    def text(self) -> str:
        """The formula as plain text, with Unicode symbols."""
        return "\n".join(map(to_text, self.latex.splitlines()))

    @property
    def ascii(self) -> str:
        """The formula as plain text, with the names of symbols."""
        text = re.sub(r"([Α-ω])(?=[\w(])(?!_)", r"\1 ", self.text)
        for sign, name in IN_ASCII.items():
            text = text.replace(sign, name)
        return text


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

OBJECTIVE = Formula(
    "The objective",
    "(7)",
    r"\max_{A \succeq 0} \mathcal{L}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} p_{ij}^A(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; L is not concave",
)

OBJECTIVE_MINIMIZED = Formula(
    "The paper's objective, minimized",
    "(7)",
    r"\min_{A \succeq 0} -\mathcal{L}(A) = -\sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) - \mu \sum_{\mathcal{U}} \sum_{y} p_{ij}^A(y) \ln p_{ij}^A(y)"
    r" + \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; -L is not convex",
)

SURPRISE = Formula(
    "The surprise at a label",
    "",
    r"-\ln p_k(y) = \ln(1 + e^{y s_k})"
    "\n"
    r"s_k = v_k^\top A v_k - \eta",
    "v_k = x_i - x_j of pair k; y = 1 for similar, y = -1 for dissimilar",
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

CONVEX_FUNCTION = Formula(
    "A convex function",
    "",
    r"f((1 - \theta) A + \theta B) \leq (1 - \theta) f(A) + \theta f(B) , \quad"
    r" 0 \leq \theta \leq 1",
)

LOGISTIC_IDENTITY = Formula(
    "One logistic term for both labels",
    "",
    r"\ln(1 + e^{-s}) = \ln(1 + e^s) - s",
)

LOGISTIC_CURVATURE = Formula(
    "The logistic term is convex",
    "",
    r"\frac{d^2}{ds^2} \ln(1 + e^s) = \sigma(s) \sigma(-s) > 0",
    "sigma(s) = 1/(1 + e^{-s})",
)

ENTROPY_CURVATURE = Formula(
    "The entropy of the posterior is not convex",
    "",
    r"\frac{d^2}{ds^2} H(\sigma(s)) = \sigma(s) \sigma(-s)"
    r" (s \operatorname{tanh}(\frac{s}{2}) - 1)",
    "H: the binary entropy in nats; negative for |s| < 1.54",
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
    r" + \mu \sum_{\mathcal{U}} (E_q[-\ln p_{ij}^A(y)] - \frac{H(q_{ij})}{a})",
    f"{PAIRS}H: the entropy in nats; a: the sharpness of the soft labels, 1 + mu in the paper",
)

LEAST_OVER_SOFT_LABELS = Formula(
    "What an unlabeled pair adds to J at its best soft label",
    "",
    r"q(y) = \frac{p(y)^a}{\sum_{y'} p(y')^a}"
    "\n"
    r"\min_{q} \mu (E_q[-\ln p] - \frac{H(q)}{a}) = -\frac{\mu}{a} \ln \sum_{y} p(y)^a"
    r" = \mu \frac{a - 1}{a} H_a(p)",
    "H_a: the Renyi entropy of order a, whose definition is the last equation; the best q is the "
    "E-step",
)

ONE_FUNCTION = Formula(
    "One function",
    "",
    r"\Phi(A) = \sum_{\mathcal{S} \cup \mathcal{D}} c_k \phi_1(s_k)"
    r" + \mu \sum_{\mathcal{U}} \phi_2(s_k) + \langle K, A \rangle + \operatorname{constant} ,"
    r" \quad \phi_1(s) = \ln(1 + e^s)",
    "s_k: the squared distance of pair k under A less eta; K: a matrix made from the labels and R",
)

THREE_LOSSES = Formula(
    "Three losses of an unlabeled pair",
    "",
    r"\operatorname{M-step} : \quad \phi_2(s) = \ln(1 + e^s)"
    "\n"
    r"J : \quad \phi_2(s) = \ln(1 + e^s) - \frac{\ln(1 + e^{a s})}{a}"
    "\n"
    r"(7) : \quad \phi_2(s) = H(\sigma(s))",
    "a: the sharpness of the soft labels; H: the binary entropy in nats",
)

LINEAR_PARTS = Formula(
    "Their linear parts",
    "",
    r"\operatorname{M-step} : \quad K = R - \sum_{k} b_k v_k v_k^\top"
    "\n"
    r"J , \quad (7) : \quad K = R - \sum_{\mathcal{D}} c_k v_k v_k^\top",
    "b_k: the weight of the label -1; D: the dissimilar pairs",
)

ENVELOPE = Formula(
    "The envelope theorem",
    "",
    r"J(A) = \min_{q} J(q, A) \Rightarrow \nabla J(A) = \nabla f(A; q(A))",
    "q(A): the E-step at A; f(A; q): the M-step with the soft labels q",
)

# The dual of the M-step, and when the two agree

SPLIT_M_STEP = Formula(
    "The M-step with a variable for each score",
    "",
    r"\min_{A \succeq 0, s} \sum_{k} c_k \ln(1 + e^{s_k}) + \langle R - G, A \rangle"
    r" + \eta \beta"
    "\n"
    r"s_k = v_k^\top A v_k - \eta \quad \operatorname{for} \operatorname{all} k",
)

LAGRANGIAN = Formula(
    "The Lagrangian",
    "",
    r"\Lambda(A, s, p) = \sum_{k} c_k \ln(1 + e^{s_k}) + \langle R - G, A \rangle + \eta \beta"
    "\n"
    r"+ \sum_{k} c_k p_k (v_k^\top A v_k - \eta - s_k)",
    "c_k p_k: the multiplier of the k-th equation",
)

SORTED_LAGRANGIAN = Formula(
    "The Lagrangian, sorted by variable",
    "",
    r"\Lambda(A, s, p) = \sum_{k} c_k (\ln(1 + e^{s_k}) - p_k s_k)"
    "\n"
    r"+ \langle M(p), A \rangle - \eta (\sum_{k} c_k p_k - \beta)"
    "\n"
    r"M(p) = \sum_{k} c_k p_k v_k v_k^\top - G + R",
)

TOUCHING_POINT = Formula(
    "Where the slope is p",
    "",
    r"\sigma(s) = p \Rightarrow s = \ln(\frac{p}{1 - p}) , \quad \ln(1 + e^s) = -\ln(1 - p)"
    "\n"
    r"\ln(1 + e^s) - p s = -\ln(1 - p) - p \ln p + p \ln(1 - p)",
    "for 0 < p < 1",
)

LOGISTIC_CONJUGATE = Formula(
    "The conjugate of the logistic term",
    "",
    r"\inf_{s} (\ln(1 + e^s) - p s) = H(p) , \quad 0 \leq p \leq 1"
    "\n"
    r"H(p) = -p \ln p - (1 - p) \ln(1 - p)",
    "outside [0, 1] the infimum is minus infinity",
)

DUAL = Formula(
    "The dual of the M-step",
    "",
    r"\max_{p \in [0,1]^N} D(p) = \sum_{k} c_k H(p_k) - \eta (\sum_{k} c_k p_k - \beta)"
    "\n"
    r"M(p) = \sum_{k} c_k p_k v_k v_k^\top - G + R \succeq 0 , \quad"
    r" R = \lambda I + \nu X^\top \Delta X",
    f"H: the binary entropy in nats; {WEIGHTS}",
)

WEAK_DUALITY = Formula(
    "Weak duality",
    "",
    r"f(A) - D(p) = \sum_{k} c_k (\ln(1 + e^{s_k}) - p_k s_k - H(p_k))"
    "\n"
    r"+ \langle M(p), A \rangle \geq 0",
)

OPTIMALITY = Formula(
    "The conditions of Karush, Kuhn and Tucker",
    "",
    r"A \succeq 0 , \quad M(p) \succeq 0"
    "\n"
    r"\langle M(p), A \rangle = 0 , \quad p_k = \sigma(s_k)",
)

DUAL_SLOPE = Formula(
    "The slope of the dual's Lagrangian",
    "",
    r"\frac{d}{dp_k} (D(p) + \langle A, M(p) \rangle)"
    r" = c_k (\ln(\frac{1 - p_k}{p_k}) + s_k)",
)

CRITICAL_TRACE_WEIGHT = Formula(
    "The critical trace weight",
    "",
    r"A = 0 \quad \operatorname{optimal} \Leftrightarrow \lambda \geq \max(0,"
    r" \lambda_{\max}(G - \sigma(-\eta) \sum_{k} c_k v_k v_k^\top - \nu X^\top \Delta X))",
    WEIGHTS,
)

GRADIENT = Formula(
    "The gradient of the M-step",
    "",
    r"\nabla f(A) = \sum_{k} c_k \sigma(s_k) v_k v_k^\top - G + R",
    WEIGHTS,
)

MOMENTS = Formula(
    "The moments match",
    "",
    r"A \succ 0 \Rightarrow \sum_{k} c_k p_k v_k v_k^\top + R = G",
    "A and p: optimal",
)

# From a metric to a proof

CERTIFICATE = Formula(
    "The certificate of an M-step",
    "",
    r"D(p) \leq \inf_{B \succeq 0} f(B) \leq f(A) , \quad \operatorname{gap} = f(A) - D(p) ,"
    r" \quad \operatorname{relative} = \frac{\operatorname{gap}}{\max(1, |f(A)|)}",
    "p: any feasible point of the dual, however A was found",
)

GAP_AT_A_METRIC = Formula(
    "The gap at a metric whose gradient is PSD",
    "",
    r"p_k = \sigma(s_k) \Rightarrow M(p) = \nabla f(A) , \quad"
    r" f(A) - D(p) = \langle \nabla f(A), A \rangle",
    "s_k: the squared distance of pair k under A less eta; p is feasible where the gradient is PSD",
)

ANCHORS = Formula(
    "Two dual points that are always feasible",
    "",
    r"M(1) = \sum_{k} (c_k - b_k) v_k v_k^\top + R \succeq 0 , \quad"
    r" M(\frac{b}{c}) = R \succeq 0"
    "\n"
    r"p_\tau = \tau p + (1 - \tau) 1 , \quad M(p_\tau) = \tau M(p) + (1 - \tau) M(1)",
    "1: the vector of ones; tau from 0 (the anchor) to 1 (p)",
)

ROUNDING = Formula(
    "One rounding, and h of them",
    "",
    r"|\operatorname{rounded} - \operatorname{exact}| \leq 2^{-53} |\operatorname{exact}| , \quad"
    r" \gamma_h = \frac{h}{2^{53} - h}",
    "for each +, -, times or divided by; gamma_h bounds the relative error after h roundings",
)

PSD_PROOF = Formula(
    "A proof that a matrix is positive definite",
    "",
    r"\|B - \delta I - F F^\top\| < \delta \Rightarrow B \succ 0",
    "F: any matrix, in practice the computed Cholesky factor of B - delta I",
)

LONGER_STEP = Formula(
    "A longer step toward p never lowers D",
    "",
    r"\frac{d}{d \tau} D(p_\tau) = \sum_{k} c_k (1 - p_k)"
    r" (\eta + \ln(\frac{p_{\tau k}}{1 - p_{\tau k}}))"
    "\n"
    r"p_{\tau k} \geq p_k \Rightarrow \eta + \ln(\frac{p_{\tau k}}{1 - p_{\tau k}}) \geq \eta + s_k"
    r" = v_k^\top A v_k \geq 0",
    "p_{tau k}: the k-th entry of p_tau, between p_k = sigma(s_k) and 1",
)

# The cone of metrics

METRIC_CONE = Formula(
    "The cone of metrics",
    "",
    r"A \succeq 0 \Leftrightarrow v^\top A v \geq 0 \quad \operatorname{for} \operatorname{all} v",
)

PROJECTION = Formula(
    "The projection onto the cone",
    "",
    r"B = \sum_{i} \alpha_i u_i u_i^\top"
    "\n"
    r"P(B) = \sum_{i} \max(0, \alpha_i) u_i u_i^\top",
    "alpha_i: the eigenvalues of the symmetric matrix B; u_i: its orthonormal eigenvectors",
)

PROJECTION_CONDITIONS = Formula(
    "When A is the projection of B",
    "",
    r"A = P(B) \Leftrightarrow A \succeq 0 , \quad A - B \succeq 0 , \quad"
    r" \langle A, A - B \rangle = 0",
)

OTHER_METRICS = Formula(
    "Any other metric is further away",
    "",
    r"\|C - B\|^2 = \|C - A\|^2 + \|A - B\|^2"
    "\n"
    r"+ 2 \langle C - A, A - B \rangle",
)

CONE_INFIMUM = Formula(
    "The smallest inner product with a metric",
    "",
    r"M \succeq 0 \Rightarrow \inf_{A \succeq 0} \langle M, A \rangle = 0",
    "for every other symmetric M the infimum is minus infinity",
)

INNER_PRODUCT = Formula(
    "The inner product with a metric",
    "",
    r"A = \sum_{i} \alpha_i u_i u_i^\top \Rightarrow"
    r" \langle C, A \rangle = \sum_{i} \alpha_i u_i^\top C u_i",
    "alpha_i: the eigenvalues of A; u_i: its orthonormal eigenvectors",
)

# Ways to solve an M-step

PROJECTED_GRADIENT = Formula(
    "A projected gradient step",
    "",
    r"A \leftarrow P(A - \frac{1}{\ell} \nabla f(A))",
    "P: the nearest PSD matrix; ell: a bound on the curvature of f",
)

FISTA = Formula(
    "FISTA",
    "",
    r"A_t = P(Y_t - \frac{1}{\ell} \nabla f(Y_t))"
    "\n"
    r"Y_{t + 1} = A_t + \frac{\omega_t - 1}{\omega_{t + 1}} (A_t - A_{t - 1}) , \quad"
    r" \omega_{t + 1} = \frac{1 + \sqrt{1 + 4 \omega_t^2}}{2}",
    "P and ell as above; omega_1 = 1, Y_1 = A_0",
)

CENTRAL_PATH = Formula(
    "The central path",
    "",
    r"A = \arg \min_{B \succ 0} f(B) - \epsilon \ln \operatorname{det} B \Rightarrow"
    r" \nabla f(A) = \epsilon A^{-1} , \quad f(A) - D(p) = m \epsilon",
    "epsilon > 0: the weight of the barrier; m: the number of features",
)

ON_A_FACE = Formula(
    "Optimality on a face, and beyond it",
    "",
    r"A = L L^\top , \quad 2 \nabla f(A) L = 0 , \quad \nabla f(A) \succeq 0",
    "L: m x rho, rho the rank; the second says that L is stationary, the third that A is optimal",
)

FORMULAS = tuple(each for each in list(globals().values()) if isinstance(each, Formula))
"""All of them."""

LATEX = {
    "sum_SD": r"\sum_{\mathcal{S} \cup \mathcal{D}}",
    "sum_D": r"\sum_{\mathcal{D}}",
    "sum_U": r"\sum_{\mathcal{U}}",
    "log": r"\ln",
    "lambda": r"\lambda",
    "beta": r"\beta",
    "eta": r"\eta",
    "mu": r"\mu",
    "tr": r"\operatorname{tr}",
    "v'Av": r"v^\top A v",
    "<": r"\langle",
    ">": r"\rangle",
}
"""What the words in the labels of a CVXPY statement stand for."""

WORD = re.compile(r"sum_SD|sum_[DU]|v'Av|[A-Za-z]+|[<>]")


def typeset(label: str) -> str:
    """Typeset a label of a CVXPY statement if it is a formula, else escape it."""
    if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", label):
        return f"{float(label):.4g}"
    words = WORD.findall(label)
    is_code = "@" in label or any(len(word) > 1 and word not in LATEX for word in words)
    if not words or is_code:
        return escape(label)
    latex = WORD.sub(lambda found: LATEX.get(found[0], found[0]) + " ", label)
    return to_mathml(latex, inline=True)

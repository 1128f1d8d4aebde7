"""The formulas that are shown to users, each written once.

The command line takes `ascii`, pages and notebooks take `mathml`. The claims of the paper in
``theory/`` have their own formulas, drawn by the same :mod:`seraph_cvx.display.mathml`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .mathml import to_mathml, to_text


@dataclass(frozen=True)
class Formula:
    """A formula in LaTeX and ASCII, and the notations derived from them.

    Attributes
    ----------
    name : str
        What it is.
    equation : str
        Its number in the paper, as "(11)"; empty if it is not in the paper.
    ascii : str
        For a terminal; one line of the formula a line of text.
    latex : str
        The same lines, in the subset of LaTeX that :mod:`seraph_cvx.display.mathml` reads.
    where : str
        What the letters mean that the formula does not define.

    Examples
    --------
    >>> from seraph_cvx.display.formulas import M_STEP_ONE_TERM
    >>> M_STEP_ONE_TERM.title
    'The M-step with one logistic term a pair (11)'
    >>> print(M_STEP_ONE_TERM.ascii.splitlines()[0])
    min_{A PSD} f(A) = sum_k c_k ln(1 + e^{s_k}) - <G, A> + eta beta + <R, A>
    """

    name: str
    equation: str
    ascii: str
    latex: str
    where: str

    @property
    def title(self) -> str:
        """The name, and the equation number where there is one."""
        return f"{self.name} {self.equation}".rstrip()

    @property
    def mathml(self) -> str:
        """The formula as MathML, one display ``<math>`` element per line."""
        return "".join(map(to_mathml, self.latex.splitlines()))

    @property
    def text(self) -> str:
        """The formula as plain text, with Unicode symbols."""
        return "\n".join(map(to_text, self.latex.splitlines()))


_PAIRS = "y = 1 for a similar pair, y = -1 for a dissimilar one; "
_WEIGHTS = (
    "v_k = x_i - x_j of pair k; c_k: mu if it is unlabeled, else its confidence, 1 by default; "
    "b_k: 0 if it is similar, c_k if dissimilar, mu q(-1) if unlabeled"
)

PROBABILITY = Formula(
    "The probability of a pair's label",
    "(8)",
    "p^A(y | x, x') = 1/(1 + exp(y (||x - x'||_A^2 - eta)))",
    r"p^A(y | x, x') = \frac{1}{1 + \exp(y (\|x - x'\|_A^2 - \eta))}",
    f"{_PAIRS}eta is the squared distance at which both are as likely",
)

OBJECTIVE = Formula(
    "The objective",
    "(7)",
    "max_{A PSD} L(A) = sum_{S u D} ln p_ij^A(y_ij) + mu sum_U sum_y p_ij^A(y) ln p_ij^A(y)"
    " - lambda tr(A)",
    r"\max_{A \succeq 0} \mathcal{L}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} p_{ij}^A(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{_PAIRS}S similar, D dissimilar, U unlabeled pairs; L is not concave",
)

M_STEP = Formula(
    "The M-step",
    "(11)",
    "max_{A PSD} F(A) = sum_{S u D} ln p_ij^A(y_ij) + mu sum_U sum_y q_ij(y) ln p_ij^A(y)"
    " - lambda tr(A)",
    r"\max_{A \succeq 0} \mathcal{F}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} q_{ij}(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{_PAIRS}S similar, D dissimilar, U unlabeled pairs; q: the soft labels; F is concave",
)

M_STEP_ONE_TERM = Formula(
    "The M-step with one logistic term a pair",
    "(11)",
    "min_{A PSD} f(A) = sum_k c_k ln(1 + e^{s_k}) - <G, A> + eta beta + <R, A>\n"
    "s_k = v_k' A v_k - eta,  G = sum_k b_k v_k v_k',  beta = sum_k b_k,"
    "  R = lambda I + nu X'LX",
    r"\min_{A \succeq 0} f(A) = \sum_{k} c_k \ln(1 + e^{s_k}) - \langle G, A \rangle"
    r" + \eta \beta + \langle R, A \rangle"
    "\n"
    r"s_k = v_k^\top A v_k - \eta , \quad G = \sum_{k} b_k v_k v_k^\top , \quad"
    r" \beta = \sum_{k} b_k , \quad R = \lambda I + \nu X^\top L X",
    _WEIGHTS,
)

DUAL = Formula(
    "The dual of the M-step",
    "",
    "max_{p in [0,1]^N} D(p) = sum_k c_k H(p_k) - eta (sum_k c_k p_k - beta)\n"
    "M(p) = sum_k c_k p_k v_k v_k' - G + R PSD,  R = lambda I + nu X'LX",
    r"\max_{p \in [0,1]^N} D(p) = \sum_{k} c_k H(p_k) - \eta (\sum_{k} c_k p_k - \beta)"
    "\n"
    r"M(p) = \sum_{k} c_k p_k v_k v_k^\top - G + R \succeq 0 , \quad"
    r" R = \lambda I + \nu X^\top L X",
    f"H: the binary entropy in nats; {_WEIGHTS}",
)

E_STEP = Formula(
    "The E-step",
    "(10)",
    "q_ij(y) = p_ij^A(y)^(1 + mu)/(sum_y' p_ij^A(y')^(1 + mu))\n"
    "q_ij(-1) = sigma(a s_ij),  a = 1 + mu",
    r"q_{ij}(y) = \frac{p_{ij}^A(y)^{1 + \mu}}{\sum_{y'} p_{ij}^A(y')^{1 + \mu}}"
    "\n"
    r"q_{ij}(-1) = \sigma(a s_{ij}) , \quad a = 1 + \mu",
    "s_ij: the squared distance under A less eta; another sharpness a > 0 is not in the paper",
)

DESCENT = Formula(
    "What the alternation descends",
    "",
    "J(q, A) = -sum_{S u D} ln p_ij^A(y_ij) + <R, A> + mu sum_U (E_q[-ln p_ij^A(y)] - H(q_ij)/a)",
    r"J(q, A) = -\sum_{\mathcal{S} \cup \mathcal{D}} \ln p_{ij}^A(y_{ij}) + \langle R, A \rangle"
    r" + \mu \sum_{\mathcal{U}} (E_q[-\ln p_{ij}^A(y)] - \frac{H(q_{ij})}{a})",
    f"{_PAIRS}H: the entropy in nats; a: the sharpness of the soft labels, 1 + mu in the paper",
)

CERTIFICATE = Formula(
    "The certificate of an M-step",
    "",
    "D(p) <= inf_{B PSD} f(B) <= f(A),  gap = f(A) - D(p),  relative = gap/max(1, |f(A)|)",
    r"D(p) \leq \inf_{B \succeq 0} f(B) \leq f(A) , \quad \operatorname{gap} = f(A) - D(p) ,"
    r" \quad \operatorname{relative} = \frac{\operatorname{gap}}{\max(1, |f(A)|)}",
    "p: any feasible point of the dual, however A was found",
)

CRITICAL_TRACE_WEIGHT = Formula(
    "The critical trace weight",
    "",
    "A = 0 optimal <=> lambda >= max(0, lambda_max(G - sigma(-eta) sum_k c_k v_k v_k' - nu X'LX))",
    r"A = 0 \quad \operatorname{optimal} \Leftrightarrow \lambda \geq \max(0,"
    r" \lambda_{\max}(G - \sigma(-\eta) \sum_{k} c_k v_k v_k^\top - \nu X^\top L X))",
    _WEIGHTS,
)

FORMULAS = (
    PROBABILITY,
    OBJECTIVE,
    M_STEP,
    M_STEP_ONE_TERM,
    DUAL,
    E_STEP,
    DESCENT,
    CERTIFICATE,
    CRITICAL_TRACE_WEIGHT,
)
"""All formulas, in the order of the paper."""

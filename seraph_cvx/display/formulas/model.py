"""The model of a pair, the paper's objectives, and why they are convex or not."""

from __future__ import annotations

from .formula import Formula

PAIRS = "y = 1 for a similar pair, y = -1 for a dissimilar one; "
WEIGHTS = (
    "v_k = x_i - x_j of pair k; c_k: mu if it is unlabeled, else its confidence, 1 by default; "
    "b_k: 0 if it is similar, c_k if dissimilar, mu q(-1) if unlabeled"
)

PROBABILITY = Formula(
    "The probability of a pair's label",
    "(8)",
    "p^A(y | x, x') = 1/(1 + exp(y (||x - x'||_A^2 - eta)))",
    r"p^A(y | x, x') = \frac{1}{1 + \exp(y (\|x - x'\|_A^2 - \eta))}",
    f"{PAIRS}eta is the squared distance at which both are as likely",
)

OBJECTIVE = Formula(
    "The objective",
    "(7)",
    "max_{A PSD} L(A) = sum_{S u D} ln p_ij^A(y_ij) + mu sum_U sum_y p_ij^A(y) ln p_ij^A(y)"
    " - lambda tr(A)",
    r"\max_{A \succeq 0} \mathcal{L}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} p_{ij}^A(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; L is not concave",
)

OBJECTIVE_MINIMIZED = Formula(
    "The paper's objective, minimized",
    "(7)",
    "min_{A PSD} -L(A) = -sum_{S u D} ln p_ij^A(y_ij) - mu sum_U sum_y p_ij^A(y) ln p_ij^A(y)"
    " + lambda tr(A)",
    r"\min_{A \succeq 0} -\mathcal{L}(A) = -\sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) - \mu \sum_{\mathcal{U}} \sum_{y} p_{ij}^A(y) \ln p_{ij}^A(y)"
    r" + \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; -L is not convex",
)

SURPRISE = Formula(
    "The surprise at a label",
    "",
    "-ln p_k(y) = ln(1 + e^{y s_k})\ns_k = v_k' A v_k - eta",
    r"-\ln p_k(y) = \ln(1 + e^{y s_k})"
    "\n"
    r"s_k = v_k^\top A v_k - \eta",
    "v_k = x_i - x_j of pair k; y = 1 for similar, y = -1 for dissimilar",
)

M_STEP = Formula(
    "The M-step",
    "(11)",
    "max_{A PSD} F(A) = sum_{S u D} ln p_ij^A(y_ij) + mu sum_U sum_y q_ij(y) ln p_ij^A(y)"
    " - lambda tr(A)",
    r"\max_{A \succeq 0} \mathcal{F}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} q_{ij}(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; q: the soft labels; F is concave",
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
    WEIGHTS,
)

CONVEX_FUNCTION = Formula(
    "A convex function",
    "",
    "f((1 - t) A + t B) <= (1 - t) f(A) + t f(B),  0 <= t <= 1",
    r"f((1 - t) A + t B) \leq (1 - t) f(A) + t f(B) , \quad 0 \leq t \leq 1",
)

LOGISTIC_IDENTITY = Formula(
    "One logistic term for both labels",
    "",
    "ln(1 + e^{-s}) = ln(1 + e^s) - s",
    r"\ln(1 + e^{-s}) = \ln(1 + e^s) - s",
)

LOGISTIC_CURVATURE = Formula(
    "The logistic term is convex",
    "",
    "d^2/ds^2 ln(1 + e^s) = sigma(s) sigma(-s) > 0",
    r"\frac{d^2}{ds^2} \ln(1 + e^s) = \sigma(s) \sigma(-s) > 0",
    "sigma(s) = 1/(1 + e^{-s})",
)

ENTROPY_CURVATURE = Formula(
    "The entropy of the posterior is not convex",
    "",
    "d^2/ds^2 H(sigma(s)) = sigma(s) sigma(-s) (s tanh(s/2) - 1)",
    r"\frac{d^2}{ds^2} H(\sigma(s)) = \sigma(s) \sigma(-s)"
    r" (s \operatorname{tanh}(\frac{s}{2}) - 1)",
    "H: the binary entropy in nats; negative for |s| < 1.54",
)

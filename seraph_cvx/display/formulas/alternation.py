"""The alternation of E-step and M-step, and what it descends."""

from __future__ import annotations

from .formula import Formula
from .model import PAIRS

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
    f"{PAIRS}H: the entropy in nats; a: the sharpness of the soft labels, 1 + mu in the paper",
)

LEAST_OVER_SOFT_LABELS = Formula(
    "What an unlabeled pair adds to J at its best soft label",
    "",
    "q(y) = p(y)^a/Z,  Z = sum_y p(y)^a\n"
    "min_q mu (E_q[-ln p] - H(q)/a) = -mu/a ln Z = mu (a - 1)/a H_a(p)",
    r"q(y) = \frac{p(y)^a}{Z} , \quad Z = \sum_{y} p(y)^a"
    "\n"
    r"\min_{q} \mu (E_q[-\ln p] - \frac{H(q)}{a}) = -\frac{\mu}{a} \ln Z"
    r" = \mu \frac{a - 1}{a} H_a(p)",
    "H_a(p) = ln(Z)/(1 - a): the Renyi entropy of order a; the best q is the E-step",
)

ONE_FUNCTION = Formula(
    "One function",
    "",
    "Phi(A) = sum_{S u D} c_k phi_1(s_k) + mu sum_U phi_2(s_k) + <M, A> + constant,"
    "  phi_1(s) = ln(1 + e^{-s})",
    r"\Phi(A) = \sum_{\mathcal{S} \cup \mathcal{D}} c_k \phi_1(s_k)"
    r" + \mu \sum_{\mathcal{U}} \phi_2(s_k) + \langle M, A \rangle + \operatorname{constant} ,"
    r" \quad \phi_1(s) = \ln(1 + e^{-s})",
    "s_k: the squared distance of pair k under A less eta; M: a matrix made from the labels and R",
)

THREE_LOSSES = Formula(
    "Three losses of an unlabeled pair",
    "",
    "M-step: phi_2(s) = ln(1 + e^{-s})\n"
    "J: phi_2(s) = ln(1 + e^{-s}) - ln(1 + e^{-a s})/a\n"
    "(7): phi_2(s) = H(sigma(s))",
    r"\operatorname{M-step} : \quad \phi_2(s) = \ln(1 + e^{-s})"
    "\n"
    r"J : \quad \phi_2(s) = \ln(1 + e^{-s}) - \frac{\ln(1 + e^{-a s})}{a}"
    "\n"
    r"(7) : \quad \phi_2(s) = H(\sigma(s))",
    "a: the sharpness of the soft labels; H: the binary entropy in nats",
)

LINEAR_PARTS = Formula(
    "Their linear parts",
    "",
    "M-step: M = sum_k (c_k - b_k) v_k v_k' + R\nJ,  (7): M = sum_S c_k v_k v_k' + R",
    r"\operatorname{M-step} : \quad M = \sum_{k} (c_k - b_k) v_k v_k^\top + R"
    "\n"
    r"J , \quad (7) : \quad M = \sum_{\mathcal{S}} c_k v_k v_k^\top + R",
    "b_k: the weight of the label -1; S: the similar pairs",
)

ENVELOPE = Formula(
    "The envelope theorem",
    "",
    "J(A) = min_q J(q, A) => nabla J(A) = nabla f(A; q(A))",
    r"J(A) = \min_{q} J(q, A) \Rightarrow \nabla J(A) = \nabla f(A; q(A))",
    "q(A): the E-step at A; f(A; q): the M-step with the soft labels q",
)

"""The dual of the M-step, step by step, and the conditions under which the two agree."""

from __future__ import annotations

from .formula import Formula
from .model import WEIGHTS

SPLIT_M_STEP = Formula(
    "The M-step with a variable for each score",
    "",
    "min_{A PSD, s} sum_k c_k ln(1 + e^{s_k}) + <R - G, A> + eta beta\n"
    "s_k = v_k' A v_k - eta for all k",
    r"\min_{A \succeq 0, s} \sum_{k} c_k \ln(1 + e^{s_k}) + \langle R - G, A \rangle"
    r" + \eta \beta"
    "\n"
    r"s_k = v_k^\top A v_k - \eta \quad \operatorname{for} \operatorname{all} k",
)

LAGRANGIAN = Formula(
    "The Lagrangian",
    "",
    "L(A, s, p) = sum_k c_k ln(1 + e^{s_k}) + <R - G, A> + eta beta\n"
    " + sum_k c_k p_k (v_k' A v_k - eta - s_k)",
    r"L(A, s, p) = \sum_{k} c_k \ln(1 + e^{s_k}) + \langle R - G, A \rangle + \eta \beta"
    "\n"
    r"+ \sum_{k} c_k p_k (v_k^\top A v_k - \eta - s_k)",
    "c_k p_k: the multiplier of the k-th equation",
)

SORTED_LAGRANGIAN = Formula(
    "The Lagrangian, sorted by variable",
    "",
    "L(A, s, p) = sum_k c_k (ln(1 + e^{s_k}) - p_k s_k)\n"
    " + <M(p), A> - eta (sum_k c_k p_k - beta)\n"
    "M(p) = sum_k c_k p_k v_k v_k' - G + R",
    r"L(A, s, p) = \sum_{k} c_k (\ln(1 + e^{s_k}) - p_k s_k)"
    "\n"
    r"+ \langle M(p), A \rangle - \eta (\sum_{k} c_k p_k - \beta)"
    "\n"
    r"M(p) = \sum_{k} c_k p_k v_k v_k^\top - G + R",
)

TOUCHING_POINT = Formula(
    "Where the slope is p",
    "",
    "sigma(s) = p => s = ln(p/(1 - p)),  ln(1 + e^s) = -ln(1 - p)\n"
    "ln(1 + e^s) - p s = -ln(1 - p) - p ln p + p ln(1 - p)",
    r"\sigma(s) = p \Rightarrow s = \ln(\frac{p}{1 - p}) , \quad \ln(1 + e^s) = -\ln(1 - p)"
    "\n"
    r"\ln(1 + e^s) - p s = -\ln(1 - p) - p \ln p + p \ln(1 - p)",
    "for 0 < p < 1",
)

LOGISTIC_CONJUGATE = Formula(
    "The conjugate of the logistic term",
    "",
    "inf_s (ln(1 + e^s) - p s) = H(p),  0 <= p <= 1\nH(p) = -p ln p - (1 - p) ln(1 - p)",
    r"\inf_{s} (\ln(1 + e^s) - p s) = H(p) , \quad 0 \leq p \leq 1"
    "\n"
    r"H(p) = -p \ln p - (1 - p) \ln(1 - p)",
    "outside [0, 1] the infimum is minus infinity",
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
    f"H: the binary entropy in nats; {WEIGHTS}",
)

WEAK_DUALITY = Formula(
    "Weak duality",
    "",
    "f(A) - D(p) = sum_k c_k (ln(1 + e^{s_k}) - p_k s_k - H(p_k))\n + <M(p), A> >= 0",
    r"f(A) - D(p) = \sum_{k} c_k (\ln(1 + e^{s_k}) - p_k s_k - H(p_k))"
    "\n"
    r"+ \langle M(p), A \rangle \geq 0",
)

OPTIMALITY = Formula(
    "The conditions of Karush, Kuhn and Tucker",
    "",
    "A PSD,  M(p) PSD\n<M(p), A> = 0,  p_k = sigma(s_k)",
    r"A \succeq 0 , \quad M(p) \succeq 0"
    "\n"
    r"\langle M(p), A \rangle = 0 , \quad p_k = \sigma(s_k)",
)

DUAL_SLOPE = Formula(
    "The slope of the dual's Lagrangian",
    "",
    "d/dp_k (D(p) + <A, M(p)>) = c_k (ln((1 - p_k)/p_k) + s_k)",
    r"\frac{d}{dp_k} (D(p) + \langle A, M(p) \rangle)"
    r" = c_k (\ln(\frac{1 - p_k}{p_k}) + s_k)",
)

CRITICAL_TRACE_WEIGHT = Formula(
    "The critical trace weight",
    "",
    "A = 0 optimal <=> lambda >= max(0, lambda_max(G - sigma(-eta) sum_k c_k v_k v_k' - nu X'LX))",
    r"A = 0 \quad \operatorname{optimal} \Leftrightarrow \lambda \geq \max(0,"
    r" \lambda_{\max}(G - \sigma(-\eta) \sum_{k} c_k v_k v_k^\top - \nu X^\top L X))",
    WEIGHTS,
)

GRADIENT = Formula(
    "The gradient of the M-step",
    "",
    "nabla f(A) = sum_k c_k sigma(s_k) v_k v_k' - G + R",
    r"\nabla f(A) = \sum_{k} c_k \sigma(s_k) v_k v_k^\top - G + R",
    WEIGHTS,
)

MOMENTS = Formula(
    "The moments match",
    "",
    "A PD => sum_k c_k p_k v_k v_k' + R = G",
    r"A \succ 0 \Rightarrow \sum_{k} c_k p_k v_k v_k^\top + R = G",
    "A and p: optimal",
)

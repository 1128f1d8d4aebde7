"""From a metric to a proof: the gap, anchors, and rounding."""

from __future__ import annotations

from .formula import Formula

CERTIFICATE = Formula(
    "The certificate of an M-step",
    "",
    "D(p) <= inf_{B PSD} f(B) <= f(A),  gap = f(A) - D(p),  relative = gap/max(1, |f(A)|)",
    r"D(p) \leq \inf_{B \succeq 0} f(B) \leq f(A) , \quad \operatorname{gap} = f(A) - D(p) ,"
    r" \quad \operatorname{relative} = \frac{\operatorname{gap}}{\max(1, |f(A)|)}",
    "p: any feasible point of the dual, however A was found",
)

GAP_AT_A_METRIC = Formula(
    "The gap at a metric whose gradient is PSD",
    "",
    "p_k = sigma(s_k) => M(p) = nabla f(A),  f(A) - D(p) = <nabla f(A), A>",
    r"p_k = \sigma(s_k) \Rightarrow M(p) = \nabla f(A) , \quad"
    r" f(A) - D(p) = \langle \nabla f(A), A \rangle",
    "s_k: the squared distance of pair k under A less eta; p is feasible where the gradient is PSD",
)

ANCHORS = Formula(
    "Two dual points that are always feasible",
    "",
    "M(1) = sum_k (c_k - b_k) v_k v_k' + R PSD,  M(b/c) = R PSD\n"
    "p_tau = tau p + (1 - tau) 1,  M(p_tau) = tau M(p) + (1 - tau) M(1)",
    r"M(1) = \sum_{k} (c_k - b_k) v_k v_k^\top + R \succeq 0 , \quad"
    r" M(\frac{b}{c}) = R \succeq 0"
    "\n"
    r"p_\tau = \tau p + (1 - \tau) 1 , \quad M(p_\tau) = \tau M(p) + (1 - \tau) M(1)",
    "1: the vector of ones; tau from 0 (the anchor) to 1 (p)",
)

ROUNDING = Formula(
    "One rounding, and h of them",
    "",
    "fl(a op b) = (a op b) (1 + e),  |e| <= u = 2^(-53),  gamma_h = (h u)/(1 - h u)",
    r"\operatorname{fl}(a \circ b) = (a \circ b) (1 + e) , \quad |e| \leq u = 2^{-53} , \quad"
    r" \gamma_h = \frac{h u}{1 - h u}",
    "op: +, -, times or divided by; gamma_h bounds the relative error after h roundings",
)

PSD_PROOF = Formula(
    "A proof that a matrix is positive definite",
    "",
    "||B - delta I - F F'|| < delta => B PD",
    r"\|B - \delta I - F F^\top\| < \delta \Rightarrow B \succ 0",
    "F: any matrix, in practice the computed Cholesky factor of B - delta I",
)

LONGER_STEP = Formula(
    "A longer step toward p never lowers D",
    "",
    "d/d tau D(p_tau) = sum_k c_k (1 - p_k) (eta + ln(r_k/(1 - r_k)))\n"
    "r_k >= p_k => eta + ln(r_k/(1 - r_k)) >= eta + s_k = v_k' A v_k >= 0",
    r"\frac{d}{d \tau} D(p_\tau) = \sum_{k} c_k (1 - p_k) (\eta + \ln(\frac{r_k}{1 - r_k}))"
    "\n"
    r"r_k \geq p_k \Rightarrow \eta + \ln(\frac{r_k}{1 - r_k}) \geq \eta + s_k"
    r" = v_k^\top A v_k \geq 0",
    "r_k: the k-th entry of p_tau, between p_k = sigma(s_k) and 1",
)

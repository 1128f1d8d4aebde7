"""The formulas of chapters 1 to 6 that the package itself does not show."""

from seraph_cvx.display.formulas import PAIRS, WEIGHTS, Formula

OBJECTIVE = Formula(
    "The objective",
    "(7)",
    r"\max_{A \succeq 0} \mathcal{L}(A) = \sum_{\mathcal{S} \cup \mathcal{D}}"
    r" \ln p_{ij}^A(y_{ij}) + \mu \sum_{\mathcal{U}} \sum_{y} p_{ij}^A(y) \ln p_{ij}^A(y)"
    r" - \lambda \operatorname{tr}(A)",
    f"{PAIRS}S similar, D dissimilar, U unlabeled pairs; L is not concave",
)

SURPRISE = Formula(
    "The surprise at a label",
    "",
    r"-\ln p_k(y) = \ln(1 + e^{y s_k})"
    "\n"
    r"s_k = v_k^\top A v_k - \eta",
    "v_k = x_i - x_j of pair k; y = 1 for similar, y = -1 for dissimilar",
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
    "sigma: the logistic function, the slope of this term",
)

ENTROPY_CURVATURE = Formula(
    "The entropy of the posterior is not convex",
    "",
    r"\frac{d^2}{ds^2} H(\sigma(s)) = \sigma(s) \sigma(-s)"
    r" \left(s \operatorname{tanh}\left(\frac{s}{2}\right) - 1\right)",
    "H: the binary entropy in nats; negative for |s| < 1.54",
)

LEAST_OVER_SOFT_LABELS = Formula(
    "What an unlabeled pair adds to J at its best soft label",
    "",
    r"q(y) = \frac{p(y)^a}{\sum_{y'} p(y')^a}"
    "\n"
    r"\min_{q} \mu \left(E_q[-\ln p] - \frac{H(q)}{a}\right) = -\frac{\mu}{a} \ln \sum_{y} p(y)^a"
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
    r"\sigma(s) = p \Rightarrow s = \ln\left(\frac{p}{1 - p}\right) , \quad"
    r" \ln(1 + e^s) = -\ln(1 - p)"
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
    r" = c_k \left(\ln\left(\frac{1 - p_k}{p_k}\right) + s_k\right)",
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

GAP_AT_A_METRIC = Formula(
    "The gap at a metric whose gradient is PSD",
    "",
    r"p_k = \sigma(s_k) \Rightarrow M(p) = \nabla f(A) , \quad"
    r" f(A) - D(p) = \langle \nabla f(A), A \rangle",
    "s_k: the squared distance of pair k under A less eta; p is feasible where the gradient is PSD",
)

PSD_PROOF = Formula(
    "A proof that a matrix is positive definite",
    "",
    r"\|B - \delta I - F F^\top\| < \delta \Rightarrow B \succ 0",
    "F: any matrix, in practice the computed Cholesky factor of B - delta I; the norm: Frobenius'",
)

LONGER_STEP = Formula(
    "A longer step toward p never lowers D",
    "",
    r"\frac{d}{d \tau} D(p_\tau) = \sum_{k} c_k (1 - p_k)"
    r" \left(\eta + \ln\left(\frac{p_{\tau k}}{1 - p_{\tau k}}\right)\right)"
    "\n"
    r"p_{\tau k} \geq p_k \Rightarrow \eta + \ln\left(\frac{p_{\tau k}}{1 - p_{\tau k}}\right)"
    r" \geq \eta + s_k"
    r" = v_k^\top A v_k \geq 0",
    "for the anchor 1: the entries of the mixture lie between p_k = sigma(s_k) and 1",
)

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

PROJECTED_GRADIENT = Formula(
    "A projected gradient step",
    "",
    r"A \leftarrow P\left(A - \frac{1}{\ell} \nabla f(A)\right)",
    "P: the nearest PSD matrix; ell: a bound on the curvature of f",
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
    "L: m x rho; the second says that L is stationary, the third that A is then optimal",
)

"""The formulas of chapter 9, methods with proofs."""

from seraph_cvx.display.formulas import Formula

LIPSCHITZ_GRADIENT = Formula(
    "The gradient does not change faster than ℓ",
    "",
    r"\|\nabla f(B) - \nabla f(A)\| \leq \ell \|B - A\|",
    "for all symmetric A and B; the norm is Frobenius'",
)

DESCENT_LEMMA = Formula(
    "The descent lemma",
    "",
    r"f(B) \leq f(A) + \langle \nabla f(A), B - A \rangle"
    "\n"
    r"+ \frac{\ell}{2} \|B - A\|^2",
    "for all symmetric A and B",
)

SLOPE_ON_THE_WAY = Formula(
    "The slope on the way from A to B",
    "",
    r"\langle \nabla f(A + \theta (B - A)), B - A \rangle"
    "\n"
    r"\leq \langle \nabla f(A), B - A \rangle + \theta \ell \|B - A\|^2",
    "theta from 0 to 1",
)

GRADIENT_DIFFERENCE = Formula(
    "Two gradients",
    "",
    r"\nabla f(B) - \nabla f(A) = \sum_{k} c_k \xi_k v_k v_k^\top"
    "\n"
    r"|\xi_k| \leq \frac{1}{4} |v_k^\top (B - A) v_k|"
    "\n"
    r"\leq \frac{1}{4} \|v_k\|^2 \|B - A\|",
    "xi_k: the difference of sigma at the two scores of pair k",
)

CURVATURE_BOUND = Formula(
    "A bound on the curvature of the M-step",
    "",
    r"\ell = \frac{1}{4} \sum_{k} c_k \|v_k\|^4",
)

STEP_GUARANTEE = Formula(
    "What one step guarantees",
    "",
    r"A = P\left(Y - \frac{1}{\ell} \nabla f(Y)\right) \Rightarrow"
    "\n"
    r"f(A) \leq f(C) + \frac{\ell}{2} (\|C - Y\|^2 - \|C - A\|^2)",
    "Y: any symmetric matrix; C: any metric",
)

STEP_PROOF = Formula(
    "Three inequalities",
    "",
    r"f(A) \leq f(Y) + \langle \nabla f(Y), A - Y \rangle + \frac{\ell}{2} \|A - Y\|^2"
    "\n"
    r"f(Y) \leq f(C) - \langle \nabla f(Y), C - Y \rangle"
    "\n"
    r"0 \leq \langle C - A, \ell (A - Y) + \nabla f(Y) \rangle",
)

STEP_SUM = Formula(
    "Their sum",
    "",
    r"f(A) \leq f(C) + \ell \langle C - A, A - Y \rangle + \frac{\ell}{2} \|A - Y\|^2",
)

THREE_POINTS = Formula(
    "Three points",
    "",
    r"2 \langle C - A, A - Y \rangle"
    "\n"
    r"= \|C - Y\|^2 - \|C - A\|^2 - \|A - Y\|^2",
    "for any three matrices",
)

GRADIENT_SUM = Formula(
    "The sum over all steps",
    "",
    r"\sum_{1 \leq i \leq t} (f(A_i) - f(C))"
    "\n"
    r"\leq \frac{\ell}{2} (\|C - A_0\|^2 - \|C - A_t\|^2)",
)

GRADIENT_RATE = Formula(
    "Projected gradient after t steps",
    "",
    r"f(A_t) - f(C) \leq \frac{\ell \|A_0 - C\|^2}{2 t}",
    "C: any metric, in particular the optimal one",
)

WEIGHTS_OF_MOMENTUM = Formula(
    "Two facts about the weights",
    "",
    r"\omega_{t + 1}^2 - \omega_{t + 1} = \omega_t^2 , \quad \omega_t \geq \frac{t + 1}{2}",
)

POTENTIAL = Formula(
    "The potential",
    "",
    r"\chi_t = \frac{2}{\ell} \omega_t^2 (f(A_t) - f(C))"
    "\n"
    r"+ \|\omega_t A_t - (\omega_t - 1) A_{t - 1} - C\|^2",
)

MIXED_METRIC = Formula(
    "A mixture of the last metric and C",
    "",
    r"B = \left(1 - \frac{1}{\omega}\right) A_t + \frac{1}{\omega} C"
    "\n"
    r"f(B) \leq \left(1 - \frac{1}{\omega}\right) f(A_t) + \frac{1}{\omega} f(C)",
    "omega: that of step t + 1",
)

STEP_TO_THE_MIXTURE = Formula(
    "The step, compared with the mixture",
    "",
    r"\omega^2 (f(A_{t + 1}) - f(C)) \leq \omega_t^2 (f(A_t) - f(C))"
    "\n"
    r"+ \frac{\ell}{2} (\|\omega (Y - B)\|^2 - \|\omega (A_{t + 1} - B)\|^2)",
    "omega and Y: those of step t + 1",
)

MOMENTUM_FITS = Formula(
    "Why the momentum is what it is",
    "",
    r"\omega (A_{t + 1} - B) = \omega A_{t + 1} - (\omega - 1) A_t - C"
    "\n"
    r"\omega (Y - B) = \omega_t A_t - (\omega_t - 1) A_{t - 1} - C",
    "omega and Y: those of step t + 1",
)

FISTA_RATE = Formula(
    "FISTA after t steps",
    "",
    r"f(A_t) - f(C) \leq \frac{\ell \|A_0 - C\|^2}{2 \omega_t^2}"
    "\n"
    r"\leq \frac{2 \ell \|A_0 - C\|^2}{(t + 1)^2}",
    "C: any metric",
)

SPLIT_DUAL = Formula(
    "The dual, split",
    "",
    r"\max_{p, B \succeq 0} D(p) , \quad M(p) = B",
)

AUGMENTED_LAGRANGIAN = Formula(
    "Its Lagrangian, with a penalty",
    "",
    r"D(p) + \langle A, M(p) - B \rangle - \frac{\kappa}{2} \|M(p) - B\|^2"
    "\n"
    r"= D(p) - \frac{\kappa}{2} \|M(p) - B - \psi\|^2 + \frac{\kappa}{2} \|\psi\|^2",
    "A = kappa psi",
)

ADMM = Formula(
    "ADMM",
    "",
    r"p_t = \arg \max_{p} D(p) - \frac{\kappa}{2} \|M(p) - B_{t - 1} - \psi_{t - 1}\|^2"
    "\n"
    r"B_t = P(M(p_t) - \psi_{t - 1})"
    "\n"
    r"\psi_t = \psi_{t - 1} - (M(p_t) - B_t)",
    "B_0 = 0, psi_0 = 0",
)

P_STEP = Formula(
    "The step in p",
    "",
    r"C_t = \kappa (\psi_{t - 1} + B_{t - 1} - M(p_t))"
    "\n"
    r"p_{t k} = \sigma(v_k^\top C_t v_k - \eta) \Rightarrow M(p_t) = \nabla f(C_t)"
    "\n"
    r"C_t + \kappa \nabla f(C_t) = \kappa (\psi_{t - 1} + B_{t - 1})",
)

MULTIPLIER_STEP = Formula(
    "The multiplier is a metric",
    "",
    r"B_t - \psi_t = M(p_t) - \psi_{t - 1}"
    "\n"
    r"\langle B_t, \psi_t \rangle = 0"
    "\n"
    r"A_t = \kappa \psi_t = P(A_{t - 1} - \kappa \nabla f(C_t))",
)

ADMM_SIGNS = Formula(
    "Three inner products",
    "",
    r"\langle M(p_t) - B^*, \frac{1}{\kappa} C_t - \psi^* \rangle \geq 0"
    "\n"
    r"\langle B_t - B^*, \psi_t - \psi^* \rangle \leq 0"
    "\n"
    r"\langle B_t - B_{t - 1}, \psi_t - \psi_{t - 1} \rangle \leq 0",
)

ADMM_INSERTED = Formula(
    "By the three steps",
    "",
    r"M(p_t) = B_t + \psi_{t - 1} - \psi_t"
    "\n"
    r"\frac{1}{\kappa} C_t = \psi_t + B_{t - 1} - B_t",
)

ADMM_DIFFERENCE = Formula(
    "What is left",
    "",
    r"\langle \psi_{t - 1} - \psi_t, \psi_t - \psi^* \rangle"
    "\n"
    r"+ \langle B_{t - 1} - B_t, B_t - B^* \rangle \geq 0",
)

ADMM_DISTANCE = Formula(
    "The distance never rises",
    "",
    r"\xi_t = \|\psi_t - \psi^*\|^2 + \|B_t - B^*\|^2"
    "\n"
    r"\xi_t \leq \xi_{t - 1} - \|\psi_t - \psi_{t - 1}\|^2 - \|B_t - B_{t - 1}\|^2",
)

FACTOR_MOVE = Formula(
    "A factor moves, and its metric with it",
    "",
    r"(L + \theta v u^\top) (L + \theta v u^\top)^\top"
    "\n"
    r"= A + \theta (v u^\top L^\top + L u v^\top) + \theta^2 \|u\|^2 v v^\top",
    "v: a direction of the features, u: of the columns of L; theta: the length of the move",
)

STATIONARY_IS_OPTIMAL = Formula(
    "Stationary, and the gradient is PSD",
    "",
    r"f(C) \geq f(A) + \langle \nabla f(A), C \rangle - \langle \nabla f(A), A \rangle"
    r" \geq f(A)",
    "C: any metric",
)

SPARE_COLUMN = Formula(
    "A move that a spare column allows",
    "",
    r"L u = 0 , \quad \|u\| = 1 \Rightarrow f(A + \theta^2 v v^\top)"
    "\n"
    r"\leq f(A) + \theta^2 v^\top \nabla f(A) v + \frac{\ell}{2} \theta^4 \|v\|^4",
)

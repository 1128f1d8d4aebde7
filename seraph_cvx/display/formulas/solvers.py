"""Ways to solve an M-step."""

from __future__ import annotations

from .formula import Formula

PROJECTED_GRADIENT = Formula(
    "A projected gradient step",
    "",
    "A <- P(A - 1/ell nabla f(A))",
    r"A \leftarrow P(A - \frac{1}{\ell} \nabla f(A))",
    "P: the nearest PSD matrix; ell: a bound on the curvature of f",
)

FISTA = Formula(
    "FISTA",
    "",
    "A_t = P(Y_t - 1/ell nabla f(Y_t))\n"
    "Y_{t+1} = A_t + (theta_t - 1)/theta_{t+1} (A_t - A_{t-1}),"
    "  theta_{t+1} = (1 + sqrt(1 + 4 theta_t^2))/2",
    r"A_t = P(Y_t - \frac{1}{\ell} \nabla f(Y_t))"
    "\n"
    r"Y_{t + 1} = A_t + \frac{\theta_t - 1}{\theta_{t + 1}} (A_t - A_{t - 1}) , \quad"
    r" \theta_{t + 1} = \frac{1 + \sqrt{1 + 4 \theta_t^2}}{2}",
    "P and ell as above; theta_1 = 1, Y_1 = A_0",
)

CENTRAL_PATH = Formula(
    "The central path",
    "",
    "A_t = arg min_{A PD} f(A) - t ln det A => nabla f(A_t) = t A_t^(-1),  f(A_t) - D(p) = m t",
    r"A_t = \arg \min_{A \succ 0} f(A) - t \ln \operatorname{det} A \Rightarrow"
    r" \nabla f(A_t) = t A_t^{-1} , \quad f(A_t) - D(p) = m t",
    "t > 0: the weight of the barrier; m: the number of features",
)

ON_A_FACE = Formula(
    "Optimality on a face, and beyond it",
    "",
    "A = L L',  2 nabla f(A) L = 0,  nabla f(A) PSD",
    r"A = L L^\top , \quad 2 \nabla f(A) L = 0 , \quad \nabla f(A) \succeq 0",
    "L: m x rho, rho the rank; the second says that L is stationary, the third that A is optimal",
)

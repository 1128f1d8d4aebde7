"""The claims of the paper as data: what each says, where, how it is checked, and what holds.

The functions that check them are in the other files of this folder; `verification.py` joins both.
"""

from __future__ import annotations

from .claim import Claim, Recomputation, Verdict

CLAIMS = (
    Claim(
        number=1,
        name="The M-step is convex",
        place="Section 2.4, below (11)",
        statement="Maximizing F over the PSD matrices is a convex program: -F is convex, so that "
        "it has no local optimum that is not global.",
        formula=r"-\mathcal{F}\left(\frac{A+B}{2}\right) \leq"
        r" \frac{-\mathcal{F}(A)-\mathcal{F}(B)}{2}",
        evidence="The DCP proof tree of (11) stated literally in CVXPY; the midpoint inequality at "
        "random PSD pairs.",
    ),
    Claim(
        number=2,
        name="The printed gradient of (11)",
        place="Section 2.4, below (11)",
        statement="The gradient of F is the weighted sum of outer products that is printed.",
        formula=r"\nabla \mathcal{F}(A) = -\sum_{\mathcal{S} \cup \mathcal{D}}"
        r" y_{ij}(1-p_{ij}^A(y_{ij})) x_{ij} - \mu \sum_{\mathcal{U}} \sum_{y} y"
        r" q_{ij}(y)(1-p_{ij}^A(y)) x_{ij} - \lambda I_m",
        evidence="Central differences of (11) along random directions; the package's own gradient.",
    ),
    Claim(
        number=3,
        name="Theorem 1: maximum entropy is maximum likelihood",
        place="Theorem 1, (1) to (3)",
        statement="(3) is the dual of (1), the primal solution has the form (2), and both are "
        "regularized maximum likelihood.",
        formula=r"\max_{p, \xi} \sum_{\mathcal{S} \cup \mathcal{D}} H(p_{ij}) -"
        r" \frac{\xi^2}{2\gamma} = \min_{\kappa} \sum_{\mathcal{S} \cup \mathcal{D}} \ln"
        r" Z_{ij}(\kappa) - \kappa f_{ij}(y_{ij}) + \frac{\gamma}{2} \kappa^2",
        evidence="(1) over p and xi and (3) over kappa solved in CVXPY for fixed metrics; their "
        "values recomputed at feasible points; p* against (2), the multipliers of (1) against "
        "kappa*; (3) against the likelihood at random kappa.",
        expected=Verdict.CORRECTED,
        correction="They are dual for each fixed A. Jointly in A they are not: (1) as printed "
        "maximizes over A the very value that (3) minimizes over A, and these differ.",
        consequence="Read Theorem 1 with the metric fixed: who learns the metric too has to "
        "minimize (3), as this package does, and not to maximize (1).",
        recomputation=Recomputation(
            """\
import numpy as np
from scipy.optimize import minimize_scalar
def value(a):  # of (1) = of (3), one similar pair at squared distance a, eta = 1, gamma = 0.1
    s = a - 1.0
    dual = lambda k: np.logaddexp(k*s/2, -k*s/2) - k*s/2 + 0.05*k**2
    return minimize_scalar(dual, bounds=(-50, 50), method="bounded").fun
print([round(float(value(a)), 4) for a in (0.0, 0.5, 1.0, 2.0, 4.0)])
""",
            "[0.3118, 0.499, 0.6931, 0.3118, 0.0967]\n",
        ),
    ),
    Claim(
        number=4,
        name='The remark "so there must be kappa* < 0"',
        place="Section 2.2, below (5)",
        statement="At an optimum of the model (6) kappa is negative.",
        formula=r"\kappa^* < 0 , \quad p^A(y | x, x') = \frac{1}{1 + \exp(-\kappa y (\|x-x'\|_A^2"
        r" - \eta))}",
        evidence="For a fixed kappa of either sign (6) without its unlabeled part is an M-step, "
        "with S and D exchanged where kappa > 0: both profiles are solved and certified over a "
        "grid of kappa, on the data and on four points on a line with one similar and three "
        "dissimilar pairs.",
        expected=Verdict.REFUTED,
        correction="One labeled pair as hoped, p > 1/2 and y(d^2 - eta) < 0, does imply kappa < "
        "0. But nothing makes the hope come true: where the trace penalty drives A* to zero, the "
        "sign of kappa* is that of #D - #S, and with more dissimilar than similar pairs it is "
        "positive.",
        consequence="A fit of (6) can end with the wrong sign, near pairs called "
        "dissimilar; SERAPH uses (8), which has the sign built in, so its metrics are not "
        "concerned.",
        recomputation=Recomputation(
            """\
import numpy as np
k, a = np.linspace(-6, 6, 2401)[:, None], np.linspace(0, 40, 2001)[None, :]
def loss(y, v):  # -ln p(y), eq. (5), of a pair at distance |v|; A = a, eta = 1
    return np.logaddexp(0, -k * y * (a * v**2 - 1))
L = loss(1, 0.3) + loss(-1, 0.1) + loss(-1, 0.2) + loss(-1, 0.2) + 0.05 * k**2 + a
i, j = np.unravel_index(L.argmin(), L.shape)
print(f"κ* = {k[i, 0]:.3f}, A* = {a[0, j]:.3f}, value {L.min():.4f};", end=" ")
print(f"best with κ < 0: {L[k[:, 0] < 0].min():.4f}")
""",
            "κ* = 0.975, A* = 0.000, value 2.3027; best with κ < 0: 2.7776\n",
        ),
    ),
    Claim(
        number=5,
        name="Theorem 2: kappa can be eliminated",
        place="Theorem 2, (6) to (8)",
        statement="For well-defined hyperparameters eta_hat and lambda_hat the simplified problem "
        "(7) has the metric of (6) up to scale, and identical posteriors.",
        formula=r"\hat{A} = -\kappa^* A^* , \quad \hat{\eta} = -\kappa^* \eta , \quad"
        r" \hat{\lambda} = \frac{\lambda}{-\kappa^*} , \quad \hat{p}^{\hat{A}} = p^{A^*}",
        evidence="mu = 0: (6) solved by a profile over kappa, the inner problem stated in CVXPY "
        "in the metric A; (7) with the mapped hyperparameters by Newton's method, certified; "
        "metrics and all posteriors compared. mu > 0: the identity of both objectives at random "
        "(A, kappa < 0), by which an optimum of one is an optimum of the other.",
        expected=Verdict.CORRECTED,
        correction="It holds where kappa* < 0. At kappa* > 0, which occurs (claim 4), eta_hat is "
        "negative and lambda_hat too: they are no hyperparameters of (7).",
        consequence="Nothing is lost by fitting (7) instead of (6) where kappa* < 0; where kappa* "
        "> 0 the models differ, and that of (7), SERAPH's own, still takes near pairs for "
        "similar.",
        recomputation=Recomputation(
            """\
import numpy as np
k, a = np.linspace(-6, 6, 2401)[:, None], np.linspace(0, 40, 2001)[None, :]
def loss(y, v):  # -ln p(y), eq. (5), of a pair at distance |v|; A = a, eta = 1
    return np.logaddexp(0, -k * y * (a * v**2 - 1))
L = loss(1, 0.3) + loss(-1, 0.1) + loss(-1, 0.2) + loss(-1, 0.2) + 0.05 * k**2 + a
best = k[np.unravel_index(L.argmin(), L.shape)[0], 0]
print(f"-κ* η = {-best:.3f}, λ / -κ* = {-1 / best:.3f}")
""",
            "-κ* η = -0.975, λ / -κ* = -1.026\n",
        ),
    ),
    Claim(
        number=6,
        name="Theorem 3: the E-step in closed form",
        place="Theorem 3, (9) and (10)",
        statement="The soft label that minimizes (9) is the posterior to the power 1 + mu, "
        "normalized.",
        formula=r"\arg\min_{q} \operatorname{KL}(q \| p) + \mu E_q[-\ln p(y)] ="
        r" \frac{p(y)^{1+\mu}}{\sum_{y'} p(y')^{1+\mu}}",
        evidence="(9) solved in CVXPY (rel_entr) for 300 posteriors, of the data and random, and "
        "several mu; the value of (9) at the closed form against that at the solver's q; the "
        "package's E-step.",
    ),
    Claim(
        number=7,
        name="Theorem 4: the gradient is bounded",
        place="Theorem 4, (12)",
        statement="F is Lipschitz in the Frobenius norm with the constant (12), whatever the size "
        "of A; lambda sqrt(m) already suffices instead of lambda m.",
        formula=r"\sup_{A \succeq 0} \|\nabla \mathcal{F}(A)\|_F \leq (\#\mathcal{S} +"
        r" \#\mathcal{D} + \mu \#\mathcal{U}) \operatorname{diam}(\mathcal{X})^2 + \lambda"
        r" \sqrt{m} \leq \dots + \lambda m",
        evidence="The norm of the printed gradient at metrics of every scale; difference quotients "
        "of F; and two points in R^4 with lambda = 100, where the constant with sqrt(m) is nearly "
        "reached.",
    ),
    Claim(
        number=8,
        name="(13) and (14) are equivalent",
        place="Section 3, (13) and (14)",
        statement="The inner minimizer of the posterior-regularization objective (14) is q = p, "
        "so that (14) is (13).",
        formula=r"\min_{q} \operatorname{KL}(q \| p) + \mu E_q[-\ln p] = \mu H(p) , \quad q = p",
        evidence="The inner problem of (14) with its slacks xi, solved in CVXPY for 200 "
        "posteriors and several mu; its q against p and against (10); its value against mu times "
        "the Shannon entropy, as (13) has it, and against mu times a Renyi entropy.",
        expected=Verdict.REFUTED,
        correction="q is proportional to p^(1 + mu), as Theorem 3 says, and the inner value is mu "
        "times the Renyi entropy of order 1 + mu. So (14) is (13) with Renyi's entropy instead of "
        "Shannon's. The two agree where every p is 0, 1/2 or 1, and to first order in mu: the "
        "difference is at most mu^2/2 times the variance of ln p, summed over the unlabeled "
        "pairs.",
        consequence="Who implements (14) gets soft labels sharper than p and Renyi's entropy in "
        "place of Shannon's: hardly visible for a small mu, plain for one near 1.",
        recomputation=Recomputation(
            """\
import cvxpy as cp, numpy as np
p, mu = np.array([0.9, 0.1]), 1.0
q, xi = cp.Variable(2), cp.Variable()
inner = cp.sum(cp.rel_entr(q, p)) + mu * xi  # of (14), one unlabeled pair
problem = cp.Problem(cp.Minimize(inner), [-np.log(p) @ q <= xi, cp.sum(q) == 1])
problem.solve(solver="CLARABEL")
print(f"q(+1) = {q.value[0]:.4f}; p(+1) = 0.9, p^2/sum p^2 = {0.81 / 0.82:.4f};", end=" ")
print(f"value {problem.value:.4f}, μ H(p) = {-mu * p @ np.log(p):.4f}", end=", ")
print(f"μ H_2(p) = {-np.log(p @ p):.4f}")
""",
            "q(+1) = 0.9878; p(+1) = 0.9, p^2/sum p^2 = 0.9878; value 0.1985, μ H(p) = 0.3251, μ "
            "H_2(p) = 0.1985\n",
        ),
    ),
    Claim(
        number=9,
        name="The EM-like scheme solves (7)",
        place="Section 2.4 and Section 3, (7), (9) to (11), (14)",
        statement="The EM-like scheme of (10) and (11), posed for (7), improves (7) step by step "
        "(implied, not stated).",
        formula=r"J(A) = -\sum_{\mathcal{S} \cup \mathcal{D}} \ln p_{ij}^A(y_{ij}) + \lambda"
        r" \operatorname{tr}(A) + \frac{w(a-1)}{a} \sum_{\mathcal{U}} H_a(p_{ij}^A) , \quad w ="
        r" \mu , \quad a = 1 + \mu",
        evidence="The alternation run on the data and on six points on a line, every M-step "
        "certified; (7), J pair by pair and in its Renyi form, at every half step; and the "
        "alternation whose M-step weighs the unlabeled pairs by 1 + mu, with (14) along it.",
        expected=Verdict.REFUTED,
        correction="(7) rises along the scheme. What falls at each half step is J: its unlabeled "
        "part is mu^2/(1 + mu) times the Renyi entropy of order 1 + mu: much less than the mu of "
        "(7) where mu is small. With (14)'s own M-step, which weighs the unlabeled pairs by 1 + "
        "mu, the alternation descends (14): mu times that Renyi entropy.",
        consequence="Watch J, not (7), to see whether a fit has settled: history_ has both, and "
        'only J never rises; to minimize (7) itself, use algorithm="direct".',
        recomputation=Recomputation(
            """\
import numpy as np
x, a = np.array([0.1, 2.0, 1.8, -0.8, -0.4, -0.8]), np.linspace(0, 20, 4001)[:, None]
s = a * (x[:, None] - x)[np.triu_indices(6, 1)] ** 2 - 1  # A = a, mu = eta = 1, lambda = 0.1
near, far = -np.logaddexp(0, s), -np.logaddexp(0, -s)  # ln p(+1), ln p(-1) of the 15 pairs
labeled = 0.1 * a[:, 0] - near[:, 0] - far[:, 1] - far[:, 5]  # the classes are 0, 0, 1, ?, ?, ?
near, far, q = np.delete(near, (0, 1, 5), axis=1), np.delete(far, (0, 1, 5), axis=1), 1.0
for _ in range(5):  # M-step (11), then E-step (10); q is q(-1); printed is (7), to be minimized
    k = np.argmin(labeled - np.sum((1 - q) * near + q * far, axis=1))
    q = 1 / (1 + np.exp(2 * (near - far)[k]))
    print(f"{labeled[k] - (np.exp(near) * near + np.exp(far) * far)[k].sum():.4f}", end=" ")
""",
            "7.9366 8.1720 8.2045 8.2215 8.2215 ",
        ),
    ),
    Claim(
        number=10,
        name="(15) is (6): the mixed norm is the trace",
        place="Section 3, (15)",
        statement="Over all rotations V the mixed norm of W = V A V' is least at the eigenvectors "
        "of A, where it is the trace.",
        formula=r"\min_{V \in \mathcal{O}^m} \|V A V^\top\|_{(2,1)} = \operatorname{tr}(A) ,"
        r" \quad \|W\|_{(2,1)} = \sum_{k} (\sum_{k'} W_{k,k'}^2)^{1/2} \geq \sum_{k} W_{k,k}",
        evidence="The mixed norm at the eigenbasis and at random rotations; for the learned metric "
        "and random ones.",
    ),
    Claim(
        number=11,
        name="The M-step is dual to a maximum-entropy problem",
        place="(11), in the spirit of Theorem 1; the dual is derived here",
        statement="The optimum of (11) is the largest entropy of posteriors whose moments "
        "dominate those of the labels, and the metric is the multiplier of that matrix "
        "inequality.",
        formula=r"\min_{A \succeq 0} -\mathcal{F}(A) = \max_{p \in [0,1]^N} \sum_{k} c_k H(p_k) -"
        r" \eta \sum_{k} (c_k p_k - b_k) , \quad \sum_{k} (c_k p_k - b_k) v_k v_k^\top + \lambda I"
        r" \succeq 0",
        evidence="At the certified metric: the dual value and matrix of p = sigma(s), pair by "
        "pair; complementary slackness; and weak duality at random feasible p.",
    ),
    Claim(
        number=12,
        name="The M-step has an optimal solution",
        place="(6), (7) and (11) with lambda >= 0; the settings with lambda = 0 of Section 5.1",
        statement="(11) has an optimal solution for every lambda >= 0 (implied, not stated).",
        formula=r"M(1) = \sum_{k} (c_k - b_k) v_k v_k^\top + \lambda I \succ 0 \Rightarrow"
        r" \arg\min_{A \succeq 0} -\mathcal{F}(A) \neq \emptyset",
        evidence="The criterion on M(1) pair by pair, against the behavior of -F along rays and "
        "the certified solver: on the data with lambda = 0 and lambda > 0, and on three small "
        "examples, one on each side and one on the border.",
        expected=Verdict.CORRECTED,
        correction="With lambda = 0 an optimum exists if and only if no pair that counts as "
        "dissimilar leaves the range of M(1). Otherwise -F falls forever along a direction, and "
        "approaches an infimum that no metric attains: the usual case with few labels.",
        consequence="With lambda = 0 a fit may have no answer: the package then says so and names "
        "the direction, and a trace weight above 0 gives it one.",
        recomputation=Recomputation(
            """\
import numpy as np
near, far = np.array([1.0, 0.0]), np.array([0.0, 1.0])  # x_i - x_j: one similar, one dissimilar
def f(A):  # -F of (11), lambda = 0, mu = 0, eta = 1
    return np.logaddexp(0, near @ A @ near - 1) + np.logaddexp(0, 1 - far @ A @ far)
for t in (1, 10, 30):
    print(f"f({t} e2 e2') = {f(t * np.outer(far, far)):.4f}", end=", ")
print(f"infimum log(1 + 1/e) = {np.log1p(np.exp(-1)):.4f}")
""",
            "f(1 e2 e2') = 1.0064, f(10 e2 e2') = 0.3134, f(30 e2 e2') = 0.3133, infimum log(1 + "
            "1/e) = 0.3133\n",
        ),
    ),
    Claim(
        number=13,
        name="The complexity of a step",
        place="Section 2.4, last paragraph",
        statement="A step of the M-step, its gradient over all pairs and its projection, takes "
        "time O(n^2 m + m^3).",
        formula=r"t(n, m) = O(n^2 m + m^3)",
        evidence="Processor seconds of one gradient and one projection on random points, one "
        "thread, the best of several, over grids of n and m; exponents by least squares of the "
        "logarithms.",
    ),
    Claim(
        number=14,
        name="Posterior sparsity and projection sparsity",
        place="Section 3; the hyper-sparsity of Sections 2.3 and 6",
        statement="A positive mu lowers the entropy of the unlabeled posterior, a larger lambda "
        "the trace and with it the rank of A; how the two act on each other is shown, not judged.",
        formula=r"\mu > 0 \Rightarrow \sum_{\mathcal{U}} H(p_{ij}^{A_\mu}) \leq"
        r" \sum_{\mathcal{U}} H(p_{ij}^{A_0}) , \quad \lambda' > \lambda \Rightarrow"
        r" \operatorname{tr}(A_{\lambda'}) \leq \operatorname{tr}(A_\lambda)",
        evidence="(7) by direct descent from the certified supervised metric, for rising mu; the "
        "certified supervised metric for rising lambda, up to the critical lambda where it must "
        "be zero; and the four settings none, post, proj, hyper side by side.",
    ),
    Claim(
        number=15,
        name="Why the M-step is convex: the reason given",
        place="Section 2.4, below the gradient of (11)",
        statement="The convexity of the feature function in A implies that of the objective.",
        formula=r"f(x, x', y; A) \quad \operatorname{convex} \Rightarrow -\ln p^A(y) = \ln"
        r" \sum_{y'} e^{\kappa f(x, x', y'; A)} - \kappa f(x, x', y; A) \quad"
        r" \operatorname{convex}",
        evidence="The midpoint inequality for -ln p(y) with kappa = -1: for a feature function "
        "that is convex in A for each y but not affine, and for random affine ones, as (4) is.",
        expected=Verdict.REFUTED,
        correction="It is affinity that does it: ln Z is convex in the features, so in A where "
        "they are affine in A, as those of (4) are. With a feature function that is convex but "
        "not affine, the loss of an observed label need not be convex.",
        consequence="With a feature function of your own it is not enough that it is convex: make "
        "it affine in A, or let explain_convexity check your M-step.",
        recomputation=Recomputation(
            """\
import numpy as np
feature = lambda a, y: a**2 if y == 1 else 0.0 * a  # convex in A = a for each y
def loss(a, y):  # -ln p(y) by (2), kappa = -1
    return np.logaddexp(-feature(a, 1), -feature(a, -1)) + feature(a, y)
ends, middle = (loss(0.0, -1) + loss(1.0, -1)) / 2, loss(0.5, -1)
print(f"loss at the midpoint {middle:.4f}, mean of the ends {ends:.4f}")
""",
            "loss at the midpoint 0.5759, mean of the ends 0.5032\n",
        ),
    ),
    Claim(
        number=16,
        name="Other feature functions are available",
        place="Section 2.2, below (5), and Appendix C.1, which is not available",
        statement="Instead of (4), other features of the distance can be used: those that are "
        "convex in A (Section 2.2), for then the M-step is convex (Section 2.4).",
        formula=r"-(φ')^2 \sigma(-s) \leq {φ'}' \leq (φ')^2 \sigma(s) , \quad s = φ(d) - \eta ,"
        r" \quad p(-1) = \sigma(s) , \quad d = v^\top A v",
        evidence="Of seven features: second differences of -ln p(+1) and -ln p(-1) against their "
        "formula and the inequalities above, small and large kappa, the scale of A that would "
        "absorb kappa, soft labels with equal G and beta. Features of more than d are not looked "
        "at.",
        expected=Verdict.CORRECTED,
        correction="With kappa fixed, exactly those features for which p(+1) and p(-1) are "
        "log-concave in d: probit, Gumbel's, or p(+1) = exp(-d - δ). Convex ones such as d^2 and "
        "e^d - 1 are not among them, nor are the unsquared distance and log d. With kappa in the "
        "model, as in (6), only affine ones are left; only these let the soft labels in by one "
        "matrix and one number.",
        consequence="Before using another feature of the distance, check that p(+1) and p(-1) are "
        "log-concave in d: probit and exp(-d - δ) pass, d^2 and log d do not.",
        recomputation=Recomputation(
            """\
import numpy as np
d = np.linspace(0.0, 8.0, 801)
def concavity(s):  # of -ln p(+1) and -ln p(-1), by second differences
    least = min(np.diff(loss, 2).min() for loss in (np.logaddexp(0, s), np.logaddexp(0, -s)))
    return max(0.0, -least) / d[1] ** 2
s = np.log(np.expm1(d + 0.1))  # p(+1) = exp(-d - 0.1)
print(f"d - 1: {concavity(d - 1):.3f}, d^2 - 1: {concavity(d**2 - 1):.3f},", end=" ")
print(f"log(e^(d + 0.1) - 1): {concavity(s):.3f}, half of it: {concavity(s / 2):.3f}")
""",
            "d - 1: 0.000, d^2 - 1: 1.462, log(e^(d + 0.1) - 1): 0.000, half of it: 6.145\n",
        ),
    ),
)

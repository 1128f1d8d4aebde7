"""9 Methods with proofs"""

import marimo

app = marimo.App(app_title="9 Methods with proofs")

with app.setup:
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import formulas, some_irises
    from scipy.optimize import minimize
    from scipy.special import expit
    from sklearn.datasets import load_iris
    from sklearn.preprocessing import StandardScaler

    from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 9 Methods with proofs

    **Goal.** You can prove how fast projected gradient and FISTA get to the optimum, that ADMM
    converges, and when a stationary factor is a global optimum; and you can compare a running
    method with its theorem.

    **Time.** Two lessons of 35 minutes: 9.1 to 9.3, and the rest. **You need** the projection of
    chapter 1 (section 1.4), the dual of chapter 3 (sections 3.7 and 3.8) and the methods of chapter
    5.

    **In Boyd and Vandenberghe's book:** 9.1.2 and 9.3.1 (curvature, rates); momentum and ADMM are
    not in the book.

    Chapter 5 showed what the methods do. Here is why they work.

    ## 9.1 The one inequality

    All that the first two methods need to know of *f* is that it is convex and that its gradient
    has a **Lipschitz constant** ℓ:

    {formulas("LIPSCHITZ_GRADIENT")}

    Then *f* lies below a parabola that touches it at *A*. This is the **descent lemma**:

    {formulas("DESCENT_LEMMA")}

    **Proof.** Follow the segment from *A* to *B* and look at the slope of *f* along it at *A* +
    θ(*B* − *A*).

    1. It exceeds the slope at θ = 0 by the inner product of a difference of gradients with *B* −
       *A*. That is at most the product of their norms (Cauchy and Schwarz).
    2. The two points are θ‖*B* − *A*‖ apart, so the gradients differ by at most ℓθ‖*B* − *A*‖:

    {formulas("SLOPE_ON_THE_WAY")}

    3. The slopes from θ = 0 to θ = 1 add up to *f*(*B*) − *f*(*A*): integrate. The integral of θ
       is ½. ∎

    ### Where ℓ comes from

    In the M-step only the probabilities σ(*s*ₖ) change with the metric:

    {formulas("GRADIENT_DIFFERENCE")}

    1. Here ξₖ is the change of σ(*s*ₖ) from *A* to *B*. The slope of σ is σ(*s*)σ(−*s*), at most ¼.
       So σ changes by at most ¼ of what the score changes: the second line.
    2. *v*ₖ<sup>⊤</sup>(*B* − *A*)*v*ₖ is the inner product of *B* − *A* and
       *v*ₖ*v*ₖ<sup>⊤</sup>, and the norm of *v*ₖ*v*ₖ<sup>⊤</sup> is ‖*v*ₖ‖²: the third line.
    3. In the first line *v*ₖ*v*ₖ<sup>⊤</sup> brings ‖*v*ₖ‖² once more. Add up the norms. ∎

    {formulas("CURVATURE_BOUND")}

    Here is the M-step of chapter 5, on 30 irises, in our own few lines of NumPy. The package has
    the same ℓ, as `smoothness_bound`.
    """)


@app.cell
def _():
    X, y = some_irises(every=5, standardized=True)  # 30, nine with a label; the metric is 4 x 4
    pairs = PairSet.from_labels(X, y)
    objective = MStepObjective(pairs)
    rows = np.vstack([pairs.labeled, pairs.unlabeled])
    V = X[rows[:, 0]] - X[rows[:, 1]]
    c = np.repeat([1.0, objective.mu], [len(pairs.labeled), pairs.n_unlabeled])
    told_similar = (y[rows[:, 0]] == y[rows[:, 1]]) & (y[rows[:, 0]] >= 0)
    b = np.where(told_similar, 0.0, c)  # the first M-step takes unlabeled pairs for dissimilar
    products = np.einsum("ki,kj->kij", V, V).reshape(len(V), 16)  # v v', a pair in each row
    G = (b @ products).reshape(4, 4)
    R, eta = objective.trace_weight * np.eye(4), objective.threshold

    def value(A):
        s = products @ A.ravel() - eta
        return c @ np.logaddexp(0, s) + np.sum((R - G) * A) + eta * np.sum(b)

    def gradient(A):
        p = expit(products @ A.ravel() - eta)
        return ((c * p) @ products).reshape(4, 4) - G + R

    def project(B):
        alpha, u = np.linalg.eigh(B)
        return (u * np.maximum(alpha, 0.0)) @ u.T

    ell = np.sum(c * np.sum(V**2, axis=1) ** 2) / 4
    A_0 = np.eye(4)  # where the methods start: the Euclidean metric
    assert np.isclose(ell, objective.smoothness_bound)
    assert np.isclose(value(A_0), objective.value(A_0))
    assert np.allclose(gradient(A_0), objective.gradient(A_0))
    return A_0, G, R, c, ell, eta, gradient, objective, products, project, value


@app.cell(hide_code=True)
def _(ell):
    mo.md(f"""
    On these pairs ℓ = **{ell:.0f}**. With this curvature or more the parabola of the descent lemma
    is never below *f*. With less it may be, and then *f* may fall less than a step to the lowest
    point of the parabola predicts.

    ### What one step guarantees

    Take a projected gradient step from *Y* to *A*. Without momentum *Y* is the metric where you
    are; let it be any symmetric matrix. Then *A* can be compared with **every** metric *C*:

    {formulas("STEP_GUARANTEE")}

    In words: either *A* is as good as *C*, or the step came closer to *C*.

    ### Why

    Three inequalities, one line each:

    {formulas("STEP_PROOF")}

    1. The first is the descent lemma, from *Y* to *A*.
    2. The second is convexity: *f* lies above its tangent at *Y*.
    3. The third is the projection. *A* is the metric nearest to *B* = *Y* − ∇*f*(*Y*)/ℓ, so ⟨*C* −
       *A*, *A* − *B*⟩ ≥ 0 by section 1.4. Multiply by ℓ.
    4. Add all three. The parts with ∇*f*(*Y*) cancel, because (*A* − *Y*) − (*C* − *Y*) + (*C* −
       *A*) = 0:

    {formulas("STEP_SUM")}

    5. Multiply out the squares on the right of the next formula to see that it holds. Put it in,
       and ‖*A* − *Y*‖² cancels. ∎

    {formulas("THREE_POINTS")}

    /// details | Check: how long may a step be where *f* is linear?
    As long as you like: the gradient does not change, so every ℓ > 0 will do, and the step is 1/ℓ.
    ///

    ## 9.2 Projected gradient: 1/*t*

    Start at a metric *A*₀ and step from *A*ₜ₋₁ to *A*ₜ, with *Y* = *A*ₜ₋₁. For every metric *C*:

    {formulas("GRADIENT_RATE")}

    **Proof.**

    1. *f never rises:* compare with *C* = *A*ₜ₋₁, where ‖*C* − *Y*‖ = 0. So *f*(*A*ₜ) is the least
       of the values so far.
    2. *Telescope:* write the guarantee for each of the steps 1, 2, … *t* with the same *C*, and add
       them. What one step subtracts, the next one adds, and only two distances are left:

    {formulas("GRADIENT_SUM")}

    3. By step 1 the left side is at least *t* times *f*(*A*ₜ) − *f*(*C*), and the right side is at
       most (ℓ/2)‖*C* − *A*₀‖². Divide by *t*. ∎

    With *C* = *A*<sup>∗</sup> this is the rate that chapter 5 announced. And the guarantee of 9.1
    with *C* = *A*<sup>∗</sup> shows that the distance to *A*<sup>∗</sup> never rises, since
    *f*(*A*ₜ) ≥ *f*(*A*<sup>∗</sup>).

    ### Compare it with the data

    We do not have *A*<sup>∗</sup>; a computer returns a metric close to it. That is no obstacle:
    the theorem holds for **every** metric *C*, so take the computed one. Its certificate has a
    proved lower bound of all values of *f* and a proved gap. So *f*(*A*ₜ) minus the lower bound,
    which is at least the true error, is at most the theorem's bound plus the gap of *C*.
    """)


@app.cell
def _(A_0, ell, gradient, objective, project, value):
    best = solve_m_step(objective, tol=1e-10)
    C = best.metric
    lower, proved_gap = best.certificate.dual_value, best.certificate.duality_gap
    distance = np.sum((A_0 - C) ** 2)
    last = 3000

    plain = [A_0]
    for _ in range(last):
        plain.append(project(plain[-1] - gradient(plain[-1]) / ell))

    errors = np.array([value(A) - lower for A in plain])  # at least the true errors
    distances = np.array([np.sum((A - C) ** 2) for A in plain])
    t = np.arange(1, last + 1)
    gradient_bound = ell * distance / (2 * t) + proved_gap
    assert proved_gap < 1e-6
    assert np.all(errors[1:] <= gradient_bound)
    assert np.all(np.diff(errors) <= 1e-10)
    assert np.all(np.diff(distances) <= 2 / ell * proved_gap + 1e-12)
    return C, best, distance, errors, gradient_bound, last, lower, proved_gap, t


@app.cell(hide_code=True)
def _(errors, gradient_bound, last):
    mo.md(f"""
    After {last} steps the error is at most **{errors[last]:.2g}**, the bound
    {gradient_bound[-1]:.2g}. The bound holds even for the worst *f* with this ℓ and this distance;
    on our *f* the method is faster than that, but still slow (9.3 draws both).

    /// details | Check: the theorem promises an error of at most 1 after 100 steps. When 0.01?
    After 10,000 steps: a hundredth of the error takes a hundred times the steps.
    ///

    ## 9.3 FISTA: 1/*t*²

    {formulas("FISTA")}

    The weights begin with ω₁ = 1, and *Y*₁ = *A*₀. They are made so that two things hold:

    {formulas("WEIGHTS_OF_MOMENTUM")}

    The first is the quadratic equation whose root defines ωₜ₊₁. The second is induction: ω₁ = 1,
    and ωₜ₊₁ is at least (1 + 2ωₜ)/2, so each weight is larger than the last one by at least ½.

    ### The potential

    *f* may rise now and then, so step 1 of 9.2 fails. But another function never rises, whatever
    the metric *C*:

    {formulas("POTENTIAL")}

    ### Why it never rises

    Write ω for ωₜ₊₁ and *Y* for *Y*ₜ₊₁.

    1. *Compare with a mixture.* ω ≥ 1, so the following *B* is a mixture of two metrics, hence a
       metric (section 1.2), and *f* is convex:

    {formulas("MIXED_METRIC")}

    2. *One step.* Use the guarantee of 9.1 with *B* in the place of *C*. Put in the bound on
       *f*(*B*), subtract *f*(*C*) on both sides, multiply by ω², and note that ω² − ω = ωₜ²:

    {formulas("STEP_TO_THE_MIXTURE")}

    3. *The momentum fits.* Substitute *B*. The first line below follows directly; for the second
       substitute *Y*, where ω(*Y* − *A*ₜ) = (ωₜ − 1)(*A*ₜ − *A*ₜ₋₁):

    {formulas("MOMENTUM_FITS")}

    4. So the two squares in step 2 are those of χₜ and χₜ₊₁. Multiply by 2/ℓ and sort. ∎

    ### The rate

    The first step has ω₁ = 1 and *Y*₁ = *A*₀, and its guarantee says χ₁ ≤ ‖*A*₀ −
    *C*‖². So χₜ ≤ ‖*A*₀ − *C*‖² for all *t*; leave out the square in χₜ, and solve for *f*(*A*ₜ):

    {formulas("FISTA_RATE")}
    """)


@app.cell
def _(A_0, C, best, distance, ell, gradient, last, lower, proved_gap, project, t, value):
    previous, A, Y, omega = A_0, A_0, A_0, 1.0
    fista_errors, potential = [value(A_0) - lower], [distance]
    for _ in range(last):
        previous, A = A, project(Y - gradient(Y) / ell)
        fista_errors.append(value(A) - lower)
        ahead = omega * A - (omega - 1) * previous - C
        potential.append(2 / ell * omega**2 * (value(A) - value(C)) + np.sum(ahead**2))
        following = (1 + np.sqrt(1 + 4 * omega**2)) / 2
        Y = A + (omega - 1) / following * (A - previous)
        omega = following
    fista_errors, potential = np.array(fista_errors), np.array(potential)

    fista_bound = 2 * ell * distance / (t + 1) ** 2 + proved_gap
    assert np.all(fista_errors[1:] <= fista_bound)
    assert np.all(np.diff(potential) <= 1e-8 * distance)
    assert np.max(np.diff(fista_errors)) > 1e-8  # f itself does rise at some step
    assert np.isclose(best.value, value(C))
    return fista_bound, fista_errors, potential


@app.cell(hide_code=True)
def _(last):
    moments = [1, 3, 10, 30, 100, 300, 1000, 3000]
    shown = np.union1d(moments, np.geomspace(1, last, 100).round().astype(int))  # steps drawn
    return moments, shown


@app.cell(hide_code=True)
def _(errors, fista_bound, fista_errors, gradient_bound, moments, potential, shown):
    def _draw(step):
        step = int(step)
        rates = Panel(
            f"At step {step}: {fista_errors[step]:.2g}",
            ("step t; dashed: the proved bound", 1, shown[-1]),
            ("f − optimum", 1e-9, 1e5),
            log="xy",
            names={BLUE: "projected gradient", ORANGE: "FISTA"},
        )
        rates.line(shown, gradient_bound[shown - 1], BLUE, "6 4", 1.5)
        rates.line(shown, errors[shown], BLUE)
        rates.line(shown, fista_bound[shown - 1], ORANGE, "6 4", 1.5)
        rates.line(shown, fista_errors[shown], ORANGE)
        ends = [fista_errors[step], fista_bound[step - 1]]
        rates.line([step, step], ends, GRAY)
        rates.dots([step, step], ends, GRAY)
        falls = Panel(
            "The potential never rises",
            ("step t", 1, shown[-1]),
            ("χ", 0, 1.05 * max(potential)),
            log="x",
        )
        falls.line(shown, potential[shown], GREEN)
        falls.dots(step, potential[step], BLACK, 7)
        return rates, falls

    Moving("Steps of FISTA:", moments, 100, _draw)


@app.cell(hide_code=True)
def _(errors, fista_errors, last):
    mo.md(f"""
    After {last} steps: **{fista_errors[last]:.0e}** with momentum, {errors[last]:.2g} without, at
    the same price per step. *f* rose at some steps of FISTA; the potential did not.

    /// details | Check: the same for FISTA: 1 after 100 steps by the theorem. When at most 0.01?
    (*t* + 1)² must grow by the factor 100, and *t* + 1 from 101 to 1,010: after 1,009 steps.
    ///

    *Here the first lesson ends. The second one proves two methods that do not step along a
    gradient.*

    ## 9.4 ADMM: the multiplier converges to the metric

    Section 3.8 showed that the multiplier of the dual *is* the metric. There is a method that
    computes just this multiplier, the **alternating direction method of multipliers**. SCS is of
    this kind; it applies the idea to a larger system, and so also detects problems that have no
    solution.

    ### Split

    The dual has an entropy for each pair, and one constraint that ties all pairs together, *M*(*p*)
    ⪰ 0. Give the slack a name of its own, so that each difficulty has its own variable:

    {formulas("SPLIT_DUAL")}

    Let *A* be the multiplier of *M*(*p*) = *B*, and add a penalty on *M*(*p*) − *B* with a positive
    weight κ. It is 0 where the constraint holds, so it does not change the problem. With the
    **scaled multiplier** ψ = *A*/κ, the price and the penalty are one square:

    {formulas("AUGMENTED_LAGRANGIAN")}

    ### Three steps

    Maximize over *p*, then over *B*, then correct the multiplier by what is left of the constraint:

    {formulas("ADMM")}

    The step in *B* is a projection: the metric nearest to *M*(*p*ₜ) − ψₜ₋₁. For the step in *p*
    set the slope to zero. As in 3.8 each entry of *p*ₜ is a logistic function of a score, now
    under the matrix *C*ₜ, and by 3.7 *M*(*p*ₜ) is the gradient of *f* there. (The best *p* is not
    at 0 or 1, where the slope of the entropy is infinite.)

    {formulas("P_STEP")}

    The last line is an equation for *C*ₜ alone: *m*(*m* + 1)/2 numbers instead of a *p* for each
    pair. Its left side is the gradient of ½‖*C*‖² + κ*f*(*C*). That is convex and grows without
    bound in every direction, because of the square, so it has a minimum, and only one. Here
    Newton's method finds it.

    ### The multiplier is a metric

    *C*ₜ need not be PSD. The multiplier is:

    {formulas("MULTIPLIER_STEP")}

    1. The third step of ADMM, sorted, is the first line. So *B*ₜ is that matrix with its negative
       eigenvalues clipped, and ψₜ is what the clip added.
    2. By 1.4 what the clip adds is PSD, and orthogonal to the projection: the second line.
    3. ψₜ is thus the projection of ψₜ₋₁ − *M*(*p*ₜ). Multiply by κ: *A*ₜ is a projected gradient
       step of length κ, but with the gradient at *C*ₜ. And it is a metric at every step.
    """)


@app.cell
def _(G, R, c, eta, gradient, objective, products, project):
    def step_in_p(target, kappa, C):
        """Newton's method for C + kappa grad f(C) = target."""
        for _ in range(60):
            residual = C + kappa * gradient(C) - target
            p = expit(products @ C.ravel() - eta)
            jacobian = np.eye(16) + kappa * (products.T * (c * p * (1 - p))) @ products
            move = np.linalg.solve(jacobian, residual.ravel()).reshape(4, 4)
            C = C - move
            if np.linalg.norm(move) <= 1e-12 * (1 + np.linalg.norm(C)):
                break
        assert np.linalg.norm(C + kappa * gradient(C) - target) <= 1e-8 * (1 + kappa)
        return C

    def admm(kappa, steps):
        """For each step psi, B, and the two residuals relative to the size of G - R and of A."""
        psi, B, C = np.zeros((3, 4, 4))
        history = [(psi, B, 1.0, 1.0)]
        for _ in range(steps):
            C = step_in_p(kappa * (psi + B), kappa, C)
            M = gradient(C)
            last_psi, last_B = psi, B
            B, psi = project(M - last_psi), project(last_psi - M)
            assert np.allclose(psi, last_psi - (M - B))  # the third step, as it is written above
            left_over = np.linalg.norm(M - B) / np.linalg.norm(G - R)
            change = np.linalg.norm(B - last_B) / max(np.linalg.norm(psi), 1e-12)
            history.append((psi, B, left_over, change))
        return history

    kappas = [0.01, 0.1, 1.0, 10.0, 100.0]
    walks = {kappa: admm(kappa, 400) for kappa in kappas}
    drawn = np.unique(np.geomspace(1, 400, 24).round().astype(int))
    proved = {
        kappa: [certify(objective, kappa * walks[kappa][step][0]) for step in drawn]
        for kappa in kappas
    }
    return drawn, kappas, proved, walks


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ### It converges, for every κ

    Let *A*<sup>∗</sup> be an optimal metric (for λ > 0 there is one, by 3.7), ψ<sup>∗</sup> =
    *A*<sup>∗</sup>/κ and *B*<sup>∗</sup> = ∇*f*(*A*<sup>∗</sup>). By 3.7 *B*<sup>∗</sup> is PSD and
    ⟨*B*<sup>∗</sup>, ψ<sup>∗</sup>⟩ = 0. **Theorem:** ξₜ, a sum of two squared
    distances, never rises, and *A*ₜ converges to an optimal metric.

    {formulas("ADMM_DISTANCE")}

    ### The proof

    Three inner products have a sign:

    {formulas("ADMM_SIGNS")}

    1. *The first:* for a convex *f*, ⟨∇*f*(*C*) − ∇*f*(*A*), *C* − *A*⟩ ≥ 0. (At *C* it lies above
       its tangent at *A*, and the other way round; add the two inequalities.) Take *C*ₜ and
       *A*<sup>∗</sup>, and divide by κ.
    2. *The second:* multiply out. ⟨*B*ₜ, ψₜ⟩ = 0 and ⟨*B*<sup>∗</sup>, ψ<sup>∗</sup>⟩ = 0; the two
       other products are of PSD matrices, with a minus sign.
    3. *The third* has the same reason: at both steps *B* and ψ are PSD and orthogonal. (At the
       start both are 0.)
    4. *Put in* what the method does. The first line is its third step; the second one is the
       definition of *C*ₜ with the first line put in:

    {formulas("ADMM_INSERTED")}

    ### The proof, from the signs to the limit

    5. The first inner product becomes ⟨*B*ₜ − *B*<sup>∗</sup> + ψₜ₋₁ − ψₜ, ψₜ − ψ<sup>∗</sup> +
       *B*ₜ₋₁ − *B*ₜ⟩ ≥ 0. Multiply out into four. One is the second inner product, one is the
       third; both are ≤ 0, so leave them out. Two are left:

    {formulas("ADMM_DIFFERENCE")}

    6. Twice each of them is a difference of squares, by "three points" in 9.1. That is the bound
       on ξₜ.
    7. *Residuals go to 0.* Add it up over all steps: the squares of all changes together are at
       most ξ₀. So the changes go to 0, and after *t* steps the smallest square was at most ξ₀/*t*.
    8. *The limit.* ψₜ and *B*ₜ stay bounded, so a subsequence converges, to a ψ and a *B*. The
       changes vanish: by step 4 *C*ₜ comes close to *A* = κψ and *M*(*p*ₜ), which is ∇*f*(*C*ₜ), to
       *B*. So ∇*f*(*A*) = *B* is PSD and orthogonal to *A*, as each *B*ₜ and ψₜ are: optimal, by
       3.7.
    9. Take **this** *A* as *A*<sup>∗</sup> from the start. Then ξₜ never rises and comes
       arbitrarily close to 0, so it goes to 0. ∎

    ### What such a solver watches

    The two changes are its **residuals**. ‖ψₜ − ψₜ₋₁‖ is ‖*M*(*p*ₜ) −
    *B*ₜ‖, by how much the constraint fails. κ‖*B*ₜ − *B*ₜ₋₁‖ is ‖*C*ₜ − *A*ₜ‖: how far the
    multiplier is from the matrix that *p*ₜ belongs to. Below, the first is relative to
    ‖*G* − *R*‖ and the second relative to ‖*A*ₜ‖. *A*ₜ is judged by its certificate.
    """)


@app.cell
def _(C, gradient, kappas, walks):
    for _kappa in kappas:
        _star = (C / _kappa, gradient(C))  # psi and B at the optimum
        _psi, _B = (np.array([each[_i] for each in walks[_kappa]]) for _i in (0, 1))
        _xi = np.sum((_psi - _star[0]) ** 2 + (_B - _star[1]) ** 2, axis=(1, 2))
        _changes = np.sum(np.diff(_psi, axis=0) ** 2 + np.diff(_B, axis=0) ** 2, axis=(1, 2))
        assert np.all(np.diff(_xi) <= -_changes + 1e-7 * _xi[0])
        assert np.sum(_changes) <= _xi[0] * (1 + 1e-7)


@app.cell(hide_code=True)
def _(drawn, kappas, lower, proved, walks):
    asked = 1e-2
    residuals = {kappa: np.array([walks[kappa][step][2:] for step in drawn]) for kappa in kappas}
    gaps = {kappa: np.array([each.relative_gap for each in proved[kappa]]) for kappa in kappas}
    _values = {kappa: np.array([each.primal_value for each in proved[kappa]]) for kappa in kappas}
    _highest = max(lower, *(each.dual_value for kappa in kappas for each in proved[kappa]))
    true_gaps = {  # measured from the best bound that was proved
        kappa: (_values[kappa] - _highest) / np.maximum(1, _values[kappa]) for kappa in kappas
    }
    stops = {  # the first drawn step at which both residuals are small
        kappa: int(np.flatnonzero(np.max(residuals[kappa], axis=1) <= asked)[0]) for kappa in kappas
    }
    return asked, gaps, stops, true_gaps


@app.cell(hide_code=True)
def _(C, G, R, asked, best, drawn, gaps, kappas, stops, true_gaps):
    _rows = [
        f"| {kappa:g} | {drawn[stops[kappa]]} | {100 * gaps[kappa][stops[kappa]]:.2g}%"
        f" | {100 * true_gaps[kappa][stops[kappa]]:.2g}% |"
        for kappa in kappas
    ]
    _head = ["| κ | both residuals ≤ 1% at step | proved gap there | gap to the best bound |"]
    assert asked == 1e-2
    assert max(true_gaps[kappa][stops[kappa]] for kappa in kappas) > 5 * asked
    _table = "\n    ".join([*_head, "| --- | --- | --- | --- |", *_rows])
    mo.md(f"""
    At the first step looked at where both residuals are below 1%:

    {_table}

    **A small residual is not a small gap.** The units explain why: ‖*G* − *R*‖ is
    {np.linalg.norm(G - R):.0f}, and an error in *M* counts in *f* times a metric of the size
    ‖*A*‖ = {np.linalg.norm(C):.1f}. One percent of the first, times the second, is
    {0.01 * np.linalg.norm(G - R) * np.linalg.norm(C):.0f}; *f* itself is {best.value:.0f} at the
    optimum. With a small κ the residual of the constraint falls slowly and the other one is small;
    with a large κ it is the other way round. The theorem holds for all κ, but it does not say
    which κ is fast, nor how fast *f*(*A*ₜ) gets to the optimum.

    /// details | Check: both residuals are exactly 0. What is *A*ₜ?
    Optimal. *C*ₜ = *A*ₜ and ∇*f*(*A*ₜ) = *M*(*p*ₜ) = *B*ₜ, which is PSD and orthogonal to *A*ₜ: the
    conditions of 3.7.
    ///

    ## 9.5 A factor: when is a stationary point global?

    Newton's method on *f*(*LL*<sup>⊤</sup>) (section 5.3) has no convexity to rely on. It stops
    where the slope in *L* is 0. What does that prove? Move *L*, *m* × ρ, by θ in the direction
    *vu*<sup>⊤</sup>; every change of *L* is a sum of such moves.

    {formulas("FACTOR_MOVE")}

    So the slope at θ = 0 is 2*v*<sup>⊤</sup>∇*f*(*A*)*Lu*. It is 0 for all *u* and *v* exactly if
    ∇*f*(*A*)*L* = 0: then *L* is **stationary**.

    ### Two theorems

    **Theorem 1.** If *L* is stationary and ∇*f*(*A*) is PSD, then *A* is a global optimum.

    1. ∇*f*(*A*)*L* = 0 makes ∇*f*(*A*)*A* = 0, so ⟨∇*f*(*A*), *A*⟩ = 0.
    2. *f* is convex in *A*, and ⟨∇*f*(*A*), *C*⟩ ≥ 0 for every metric *C*, by chapter 1. So no
       metric *C* is better than *A*: ∎

    {formulas("STATIONARY_IS_OPTIMAL")}

    **Theorem 2.** If *L* is a local minimum and its columns are linearly dependent, then *A* is a
    global optimum.

    1. Dependent columns: *Lu* = 0 for some *u* of length 1. In the move above, the part with θ
       vanishes, and *A* becomes *A* + θ²*vv*<sup>⊤</sup>.
    2. Apply the descent lemma to it:

    {formulas("SPARE_COLUMN")}

    3. If *v*<sup>⊤</sup>∇*f*(*A*)*v* were negative for some *v*, *f* would fall for all small θ,
       and *L* would not be a local minimum. So ∇*f*(*A*) is PSD. A local minimum is stationary, and
       Theorem 1 applies. ∎

    The proof uses only the second derivative in θ, 2*v*<sup>⊤</sup>∇*f*(*A*)*v*. So it is enough
    that *L* is stationary and that no second derivative is negative: **second-order stationary**.

    **One spare column makes a local minimum global.** With ρ ≥ *m* columns every local minimum is
    global: if they are dependent, use Theorem 2; if not, ρ = *m* and *L* has an inverse, so
    ∇*f*(*A*)*L* = 0 makes ∇*f*(*A*) = 0, and Theorem 1 applies.

    ### With too few columns

    With fewer columns this may fail. Here are eight irises, all with a label. The optimal metric
    has rank 1, so one column would be enough:
    """)


@app.cell
def _():
    _points, _kinds = load_iris(return_X_y=True)
    _eight = [17, 46, 53, 61, 63, 73, 91, 124]
    _eight_points = StandardScaler().fit_transform(_points)[_eight]
    small = MStepObjective(
        PairSet.from_labels(_eight_points, _kinds[_eight]), trace_weight=2.0, threshold=3.0
    )
    small_best = solve_m_step(small, tol=1e-10)
    assert np.sum(np.linalg.eigvalsh(small_best.metric) > 1e-6) == 1

    def newton(rho, seed):
        """Where Newton's method in a trust region stops, from a random factor."""
        shape = (4, rho)
        answer = minimize(
            lambda x: small.program.at(x.reshape(shape)).value,
            np.random.default_rng(seed).normal(size=4 * rho),
            jac=lambda x: small.program.at(x.reshape(shape)).factor_gradient.ravel(),
            hessp=lambda x, d: (
                small.program.at(x.reshape(shape)).hessian_product(d.reshape(shape)).ravel()
            ),
            method="trust-ncg",
            options={"gtol": 1e-7},
        )
        return answer.x.reshape(shape)

    factors = {rho: [newton(rho, seed) for seed in range(12)] for rho in (1, 2, 3, 4, 5)}
    return factors, small, small_best


@app.cell
def _(factors, small, small_best):
    ends = {
        rho: [
            (
                small.value(L @ L.T) - small_best.certificate.dual_value,
                certify(small, L @ L.T).relative_gap,
                np.linalg.eigvalsh(small.gradient(L @ L.T))[0],
            )
            for L in found
        ]
        for rho, found in factors.items()
    }
    for _found in factors.values():
        for _L in _found:  # all of them are stationary
            assert np.max(np.abs(small.gradient(_L @ _L.T) @ _L)) < 1e-4
    for _rho, _found in ends.items():  # refuted or proved; proved with a spare column
        for _above, _gap, _ in _found:
            assert (_above > 1e-3) != (_gap < 1e-5)
            assert _gap < 1e-5 or _rho < 2

    # The worst end with one column: a strict local minimum in L, and not a global one.
    _worst = int(np.argmax([above for above, *_ in ends[1]]))
    stuck = factors[1][_worst]
    stuck_above = small.value(stuck @ stuck.T) - small_best.certificate.primal_value
    stuck_hessian = [
        small.program.at(stuck).hessian_product(direction.reshape(4, 1)).ravel()
        for direction in np.eye(4)
    ]
    stuck_curvature = np.linalg.eigvalsh(np.array(stuck_hessian))[0]
    stuck_slope = np.linalg.eigvalsh(small.gradient(stuck @ stuck.T))[0]
    assert stuck_above > 1
    assert stuck_curvature > 1
    assert stuck_slope < -1
    return ends, stuck_above, stuck_curvature, stuck_slope


@app.cell(hide_code=True)
def _(ends, stuck_above, stuck_curvature, stuck_slope):
    _refuted = sum(above > 1e-3 for above, *_ in ends[1])
    mo.md(f"""
    Of {len(ends[1])} starts with one column, {_refuted} end at a point that is stationary and
    refuted. In the worst of them *f* is **{stuck_above:.1f}** above its value at a metric that we
    have, and yet this is a local minimum in *L*, as far as numbers show: the slope is 0 and the
    least eigenvalue of the second derivative is {stuck_curvature:.1f} > 0, so no short move of one
    column helps. The gradient in *A* shows that it is not optimal: it has the eigenvalue
    −{-stuck_slope:.0f}. A second column is a way out, by Theorem 2: start it along that
    eigenvector. From two columns on, all ends are proved optimal to within 10⁻⁵, each by its own
    certificate.

    Here two columns were enough from every start; only ρ ≥ *m* is proved to be. That Newton's
    method in a trust region ends at a second-order stationary point is not proved here, and need
    not be: the certificate judges the end.

    /// details | Check: *L* is a local minimum with four columns and rank 3. Is it optimal?
    *LL*<sup>⊤</sup> is: its columns are dependent, and Theorem 2 asks for nothing else,
    whatever the number *m* of features.
    ///

    ## Questions

    /// details | 1. The step length is 1/ℓ. Is a longer step always worse?
    No. ℓ is a bound on the curvature, and *f* may bend less where you are. All that the proof of
    9.1 needs is the descent lemma for this one step, from *Y* to *A*, with 1 divided by the length
    of the step in the place of ℓ, and you can test that after the step. This is a **line search**:
    try a longer step, and shorten it until the inequality holds.
    ///

    /// details | 2. FISTA's potential never rises. Why does that not prove that *f* never rises?
    *f*(*A*ₜ) − *f*(*C*) has the weight ωₜ², and the other term of χₜ is a square that can shrink.
    *f* may gain what the square loses. The potential bounds *f* by a curve that falls like 1/*t*²;
    below that curve *f* may go up and down.
    ///

    /// details | 3. *L* = 0 is stationary for every *f*. When is it a global optimum?
    Its columns are dependent, and every *u* has *Lu* = 0. So by Theorem 2 it is one if it is a
    local minimum, and by Theorem 1 if ∇*f*(0) is PSD, that is, if λ is large enough (exercise 5
    says how large). Otherwise it is a point to leave, along an eigenvector with a negative
    eigenvalue.
    ///

    ## Exercise

    [Problem set 9](../exercises/set_9_methods.py): find the constant of the descent lemma for one
    logistic pair by hand, and state a step of projected gradient as a problem in CVXPY. Then break
    it: find a step that is so long that *f* rises.
    `seraph-cvx check-exercise set9 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

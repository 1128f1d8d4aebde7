"""7 Convex duality"""

import marimo

app = marimo.App(app_title="7 Convex duality")

with app.setup:
    import warnings

    import cvxpy as cp
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import enclosure, formulas, some_irises

    from seraph_cvx import (
        MStepObjective,
        OptimumNotAttained,
        PairSet,
        certify,
        certify_problem,
        solve_m_step,
    )


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 7 Convex duality

    **Goal.** You can derive the dual of any problem with a cone, prove that it bounds the optimum,
    prove when the two values agree, and recognize the problems where they do not.

    **Time.** Two lessons of 30 minutes: 7.1 to 7.3, and the rest. **You need** chapter 1, chapter 3
    as an example, and for section 7.5 the letters of chapter 2 and the anchors of chapter 4.

    **In Boyd and Vandenberghe's book:** 2.5 and 2.6 (separation, dual cones), 5.1 to 5.3 (duality),
    5.6 (sensitivity), 5.8 and 5.9 (alternatives, generalized inequalities).

    Chapter 3 derived one dual, for one problem. This chapter gives the general rule and its limits.
    Up to the middle of section 7.5 the letters are those of the book, where it says *Fx* + *g* ⪯ 0
    for our *Fx* ⪯ *h*: *x* is the variable, *f*₀ the cost, λ the multiplier, *L* the Lagrangian,
    *g* the dual function, *p*<sup>⋆</sup> the optimum. A multiplier that is a matrix is called *Z*.

    ## 7.1 A problem and its Lagrangian

    {formulas("CONE_CONSTRAINT")}

    The variable is *x*, the cost is *f*₀(*x*), and *x* must keep *h* − *Fx* in a closed convex cone
    𝒦. The cost may be defined on a part of the space only, its **domain**. One form covers most of
    what you will meet:

    - inequalities *Fx* ≤ *h*: 𝒦 is the set of vectors without negative entries;
    - equations *Fx* = *h*: 𝒦 = {{0}};
    - a matrix that must be PSD: 𝒦 is the cone of chapter 1.

    Now allow the constraint to be broken, at a price. A **multiplier** λ is the price of a unit of
    *h* − *Fx*. A point that uses less than it is allowed gets the price of the rest; a point that
    uses more pays for the excess.

    {formulas("GENERAL_LAGRANGIAN")}

    Hold *x* still: *L* is an affine function of λ, a straight line if λ is a number. So *g* is the
    pointwise minimum of many lines, and that makes it **concave**: at a mixture of two multipliers
    each line has the mixture of its two values, which is at least the mixture of the two values of
    *g*. We used nothing about *f*₀: the dual function is concave even if *f*₀ is not convex.

    ### One number

    Take one number *x*, the cost (*x* − 2)² and the constraint 1 − *x* ≥ 0. The best feasible point
    is *x* = 1, with *p*<sup>⋆</sup> = 1.

    {formulas("ONE_NUMBER")}

    Move the multiplier. On the left is the Lagrangian, on the right the dual function.
    """)


@app.cell(hide_code=True)
def _():
    def _draw(price):
        x = np.linspace(-0.5, 3.5, 61)
        best = 2 - price / 2
        bound = price - price**2 / 4
        lagrangian = Panel(
            f"The Lagrangian at λ = {price:g}",
            ("x", -0.5, 3.5),
            ("value", -1, 5),
            names={GRAY: "f₀(x)", BLUE: "L(x, λ)", BLACK: "optimum", GREEN: "feasible"},
        )
        lagrangian.bar((-0.5, 1), (-1, 5), GREEN, 0.15)
        lagrangian.line(x, (x - 2) ** 2, GRAY)
        lagrangian.line(x, (x - 2) ** 2 - price * (1 - x), BLUE)
        lagrangian.line([-0.5, 3.5], [1, 1], BLACK, "6 4", 1.5)
        lagrangian.dots(best, bound, ORANGE, 7)
        dual = Panel(
            f"The lowest line: g(λ) = {bound:.3g}",
            ("λ", 0, 4),
            ("value", -1, 5),
            names={GRAY: "a line for each x", BLUE: "g(λ)", BLACK: "optimum"},
        )
        prices = np.linspace(0, 4, 41)
        for fixed in np.linspace(-0.5, 3, 15):
            dual.line([0, 4], (fixed - 2) ** 2 - np.array([0, 4]) * (1 - fixed), GRAY, width=0.8)
        dual.line(prices, prices - prices**2 / 4, BLUE)
        dual.line([0, 4], [1, 1], BLACK, "6 4", 1.5)
        dual.dots(price, bound, ORANGE, 7)
        return lagrangian, dual

    Moving("Multiplier λ:", [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], 1.0, _draw)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    Green marks the feasible *x*. There the blue curve is never above the gray one, so **the minimum
    of the Lagrangian never exceeds the optimum**. If the price is too low, the minimizer breaks the
    constraint and pays for it; if the price is too high, the minimizer leaves some of the
    constraint unused. At λ = 2 it does neither, and the bound is the optimum itself.

    /// details | Check: the cost is (*x* − 2)², the constraint 3 − *x* ≥ 0. Which λ is best?
    λ = 0: the minimizer *x* = 2 of the cost alone is feasible, so *g*(0) = 0 is the optimum. A
    constraint with room to spare has the price 0.
    ///

    ## 7.2 Weak duality, and the dual of a cone program

    A multiplier gives a bound if a point whose slack is in 𝒦 never pays anything:

    {formulas("DUAL_CONE")}

    Vectors without negative entries are their own dual cone (let *u* be each unit vector). So are
    the PSD matrices (chapter 1, question 2). For equations, 𝒦 = {{0}}, every λ will do: multipliers
    of equations have any sign.

    **Weak duality.** If *x* is feasible and λ is in the dual cone, then *g*(λ) ≤ *f*₀(*x*).

    {formulas("GENERAL_WEAK_DUALITY")}

    1. *g*(λ) is the infimum over **all** *x*, and this *x* is one of them.
    2. *h* − *Fx* is in 𝒦 and λ in 𝒦<sup>∗</sup>, so we subtract a number ≥ 0. ∎

    The **dual problem** is to find the best bound, the largest *g*(λ) with λ in 𝒦<sup>∗</sup>.

    ### The dual of a cone program

    Let the cost be linear, *c*<sup>⊤</sup>*x*. Sort the Lagrangian by its variables:

    {formulas("CONE_PROGRAM")}

    It is affine in *x*, and *x* is free. (*F* may lead to matrices; then *F*<sup>⊤</sup>λ has the
    entries ⟨*F*ᵢ, λ⟩, where *F*ᵢ is what *F* makes of the *i*-th unit vector.) Either the vector in
    front of *x* is 0, or the infimum is −∞, which is no bound. So the dual has a linear equation:

    {formulas("CONE_PROGRAM_DUAL", "CONE_PROGRAM_GAP")}

    For the gap, substitute −*F*<sup>⊤</sup>λ for *c*. It is 0 if and only if λ and *h* − *Fx* are
    orthogonal: **complementary slackness**, as in chapter 3.

    ### Two numbers

    {formulas("TWO_NUMBERS")}

    *By hand:* *x*₁ ≥ 0, *x*₂ ≥ 0 and *x*₁*x*₂ ≥ 1, so that the sum is at least 2, at *x* = (1, 1).
    *The dual*, with a matrix *Z* as the multiplier: ⟨*Z*, *h* − *Fx*⟩ is *Z*₁₁*x*₁ + *Z*₂₂*x*₂ +
    2*Z*₁₂. The vector in front of *x* is 0 if *Z*₁₁ = *Z*₂₂ = 1, and −2*Z*₁₂ is left to be
    maximized. *Z* is PSD exactly if |*Z*₁₂| ≤ 1: the dual optimum is 2 as well. In CVXPY:
    """)


@app.cell
def _():
    def pair_of_problems():
        x = cp.Variable(2, name="x")
        primal = cp.Problem(cp.Minimize(cp.sum(x)), [cp.bmat([[x[0], 1], [1, x[1]]]) >> 0])
        Z = cp.Variable((2, 2), PSD=True, name="Z")
        dual = cp.Problem(cp.Maximize(-2 * Z[0, 1]), [cp.diag(Z) == 1])
        return primal, dual

    of_primal, of_dual = map(certify_problem, pair_of_problems())
    for _each in (of_primal, of_dual):
        assert _each.lower <= 2 <= _each.upper
        assert _each.relative_gap < 1e-6
    return of_dual, of_primal


@app.cell(hide_code=True)
def _(of_dual, of_primal):
    mo.md(f"""
    `certify_problem` proves an interval for each: the primal optimum lies in
    {enclosure(of_primal.lower, of_primal.upper, 8)}, the dual one in
    {enclosure(of_dual.lower, of_dual.upper, 8)}. Its lower bound on a minimum comes from a
    multiplier, by weak duality; chapter 10 explains how it proves that an exact one exists.

    /// details | Check: why is *x*₁ + 2*x*₂ ≥ 1 wherever *x*₁ + *x*₂ ≥ 1 and *x* ≥ 0?
    *x*₁ + 2*x*₂ = 1 + 1(*x*₁ + *x*₂ − 1) + 0*x*₁ + 1*x*₂: the multiplier λ = (1, 0, 1)
    is in the dual cone and proves it. At *x* = (1, 0) the cost is 1, so no other λ proves more.
    ///

    ## 7.3 Strong duality and Slater's condition

    **Theorem.** Let *f*₀ be convex and *p*<sup>⋆</sup> finite. Suppose that some *x̃* in the domain
    of *f*₀ has *h* − *Fx̃* in the **interior** of 𝒦 (Slater's condition). Then there is a λ in
    𝒦<sup>∗</sup> with *g*(λ) = *p*<sup>⋆</sup>: there is no gap, and the dual has an optimum.

    (We are in finitely many dimensions. The cone {{0}} has no interior: solve equations first, and
    apply the theorem to what is left. It then has multipliers for the other constraints.)

    ### The value set

    Change the right side *h* by *u*. Call (*u*, *t*) **reachable** if some *x* in the domain of
    *f*₀ has *h* + *u* − *Fx* in 𝒦 and *f*₀(*x*) ≤ *t*: with this right side, the cost *t* is
    enough. All reachable points form the value set. Above *u* = 0 it begins at the height
    *p*<sup>⋆</sup>.

    Where is *g*(λ) in this picture? Take a reachable point, and a λ in the dual cone:

    {formulas("LINE_BELOW")}

    So the line with slope −λ that crosses *u* = 0 at the height *g*(λ) lies **below the whole value
    set**. (At the best λ it says what a change of the right side is worth: the optimum is at least
    *p*<sup>⋆</sup> − ⟨λ, *u*⟩.) The dual looks for the line that crosses *u* = 0 as high as
    possible. Two problems, with the same multiplier:

    - on the left that of section 7.1, where *x̃* = 0 meets Slater's condition. With a right side of
      1 + *u* the optimum is (1 − *u*)², or 0 from *u* = 1 on;
    - on the right, minimize *x*₁ over the domain *x*₁² ≤ *x*₂, with the constraint −*x*₂ ≥ 0. Only
      *x* = 0 is feasible, so *p*<sup>⋆</sup> = 0, and no *x* in the domain has −*x*₂ > 0: no Slater
      point. With a right side of *u* ≥ 0 the optimum is minus the square root of *u*; with *u* < 0
      there is none. The infimum of *x*₁ + λ*x*₂ over the domain is *g*(λ) = −1/(4λ), at *x*₁ =
      −1/(2λ), *x*₂ = *x*₁².
    """)


@app.cell(hide_code=True)
def _():
    def _draw(price):
        panels = []
        for name, chi, least, optimum, bound, bottom, top in (
            ("Slater", np.linspace(-1, 2, 61), lambda c: np.maximum(1 - c, 0) ** 2, 1.0,
             price - price**2 / 4, -1.0, 4.0),
            ("No Slater", np.linspace(0, 2**0.5, 61) ** 2, lambda c: -np.sqrt(c), 0.0,
             -1 / (4 * price), -2.0, 1.0),
        ):  # fmt: skip
            panel = Panel(
                f"{name}: g(λ) = {bound:.3g}",
                ("u", -1, 2),
                ("t", bottom, top),
                names={GRAY: "value set", BLACK: "optimum", ORANGE: "g(λ)"},
            )
            panel.area(chi, least(chi), top, GRAY)
            panel.line(chi, least(chi), GRAY)
            ends = np.array([-1.0, 2.0])
            panel.line(ends, bound - price * ends, BLUE)
            panel.dots(0, optimum, BLACK, 7, hollow=True)
            panel.dots(0, bound, ORANGE, 6)
            panels.append(panel)
        return panels

    Moving(
        "Multiplier, the slope of the line is −λ:",
        [0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0],
        1.0,
        _draw,
    )


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    On the left the line of slope −2 touches the value set above *u* = 0: the bound is the optimum.
    On the right the value set ends at *u* = 0 with a **vertical** edge. Every line of finite slope
    passes below the corner: *g*(λ) comes as close to 0 as you like and never gets there.

    ### The proof

    We use one tool, the **separation theorem**: if two nonempty convex sets have no point in
    common, there is a plane between them. That is, there is a linear function, not zero
    everywhere, whose values on the first set are all at least as large as those on the second.

    1. *The value set is convex.* Two points are reachable, each by an *x* of its own. The mixture
       of the two *x* reaches the mixture of the points: *h* + *u* − *Fx* is affine and 𝒦 is convex,
       so the constraint holds; and *f*₀ of a mixture is at most the mixture of the costs, because
       *f*₀ is convex.
    2. *A second convex set:* the points (0, *t*) with *t* < *p*<sup>⋆</sup>. None of them is
       reachable: a feasible *x* with *f*₀(*x*) ≤ *t* < *p*<sup>⋆</sup> would contradict that
       *p*<sup>⋆</sup> is the infimum.
    3. *Separate them.* The linear function has the form ⟨λ, *u*⟩ + μ*t*, with λ and μ not both 0.
       At every reachable point it is at least as large as at (0, *t*) for any *t* <
       *p*<sup>⋆</sup>.
    4. *Signs.* The function is bounded from below on the value set. If (*u*, *t*) is reachable, so
       is every point above it; with μ < 0 the function would fall without bound on the way up. So μ
       ≥ 0. And if *u*′ is in 𝒦, then (*u* + *u*′, *t*) is reachable too, because the sum of two
       points of a convex cone is in the cone; the same for all multiples of *u*′. With ⟨λ, *u*′⟩ <
       0 the function would again fall without bound. So λ is in 𝒦<sup>∗</sup>. In step 3, let *t*
       go to *p*<sup>⋆</sup> from below:

    {formulas("SEPARATION")}

    5. *The plane is not vertical.* **Here we use Slater's condition, and only here.** Suppose that
       μ = 0. Then λ ≠ 0, and ⟨λ, *u*⟩ ≥ 0 at all reachable points. Because *h* − *Fx̃* is in the
       interior, *h* + *u* − *Fx̃* is still in 𝒦 for every *u* that is short enough. So (*u*,
       *f*₀(*x̃*)) is reachable for these *u*, also for *u* = −δλ with a small δ > 0. But ⟨λ, −δλ⟩ <
       0: a contradiction. So μ > 0.
    6. *Read off the bound.* Divide by μ, and write λ for λ/μ. For **any** *x* in the domain the
       following point is reachable, because *h* + *u* − *Fx* = 0 is in 𝒦:

    {formulas("SUPPORT")}

    The infimum over *x* is *g*(λ), so *p*<sup>⋆</sup> ≤ *g*(λ). Weak duality is the other half. ∎

    Convexity of *f*₀ came in at step 1, Slater at step 5. The theorem says that the **dual** has an
    optimum. It does not say that the primal has one.

    /// details | Check: which step fails for the problem on the right of the picture?
    Step 5. The only plane between the two sets is vertical: μ = 0, the function is λ*u*, and the
    value set lies where *u* ≥ 0. Steps 1 to 4 and 6 need no Slater point.
    ///

    *Here the first lesson ends. The second one begins with the problems that the theorem leaves
    out.*

    ## 7.4 When it fails

    Three semidefinite programs, each small enough for a blackboard.

    ### (a) A gap

    {formulas("PROGRAM_WITH_A_GAP")}

    *The primal.* A PSD matrix with a 0 on its diagonal has zeros in that row: else the 2 × 2
    determinant with this 0 would be negative. So *x*₁ = 1, and **the optimum is 1**, at *x* = (1,
    0). There is no Slater point, because a matrix with a 0 on its diagonal is not in the interior.

    *The dual.* ⟨*Z*, *h* − *Fx*⟩ is *Z*₁₁*x*₁ + *Z*₂₃(1 − *x*₁) + *Z*₃₃*x*₂, hence

    {formulas("GAP_LAGRANGIAN")}

    The dual is to maximize −*Z*₂₃ with *Z*₁₁ = 1 + *Z*₂₃, *Z*₃₃ = 0 and *Z* PSD. Again the 0 on the
    diagonal forces *Z*₂₃ = 0. So **the dual optimum is 0**: both have an optimum, and the gap is 1.

    ### (b) An optimum that nobody attains

    {formulas("NOT_ATTAINED")}

    *x*₁*x*₂ ≥ 1 forces *x*₁ > 0, and *x* = (1/θ, θ) is feasible for every θ > 0. So the infimum is
    0, and it is not attained. Slater's condition holds, at *x* = (2, 2): there is no gap, and the
    dual has an optimum: *Z*₁₁ = 1 and zeros elsewhere prove *x*₁ ≥ 0. Only the primal has none.

    ### (c) Weakly infeasible

    {formulas("WEAKLY_INFEASIBLE")}

    No *x* is feasible. But replace the 0 by 1/*x*, which is as small as you like, and the matrix is
    PSD: the problem is **weakly infeasible**. A proof by a multiplier would be a *Z* in
    𝒦<sup>∗</sup> with *F*<sup>⊤</sup>*Z* = 0 and ⟨*h*, *Z*⟩ < 0, because a feasible *x* would give
    0 ≤ ⟨*Z*, *h* − *Fx*⟩ = ⟨*h*, *Z*⟩ < 0. Here that asks for *Z*₁₁ = 0 and *Z*₁₂ < 0, which no PSD
    matrix has. The dual is to maximize −2*Z*₁₂ with *Z*₁₁ = 1: with *Z*₁₂ = −θ and *Z*₂₂ = θ² it
    proves that the optimum is at least 2θ, for any θ you name. No single multiplier proves that it
    is +∞.

    ### What solvers say, and what can be proved
    """)


@app.cell
def _():
    def with_a_gap(delta=0.0):
        x = cp.Variable(2, name="x")
        half = (1 - x[0]) / 2
        matrix = cp.bmat([[x[0], 0, 0], [0, delta, half], [0, half, x[1]]])
        return cp.Problem(cp.Minimize(x[0]), [matrix >> 0])

    def on_its_face():  # (a) without the row that must be zero: what is left is diagonal
        x = cp.Variable(2, name="x")
        return cp.Problem(cp.Minimize(x[0]), [(1 - x[0]) / 2 == 0, x >= 0])

    def not_attained():
        x = cp.Variable(2, name="x")
        return cp.Problem(cp.Minimize(x[0]), [cp.bmat([[x[0], 1], [1, x[1]]]) >> 0])

    def weakly_infeasible():
        x = cp.Variable(name="x")
        return cp.Problem(cp.Minimize(x), [cp.bmat([[x, 1], [1, 0]]) >> 0])

    def claim(problem, solver):
        """What a solver says of a problem: its status, and the value."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "may be inaccurate": the status says so
                problem.solve(solver=solver)
        except cp.SolverError:
            return "gives up"
        return f"{problem.status.replace('_', ', ')}: {problem.value:.2g}"

    return claim, not_attained, on_its_face, weakly_infeasible, with_a_gap


@app.cell
def _(claim, not_attained, on_its_face, weakly_infeasible, with_a_gap):
    _problems = {
        "(a)": with_a_gap(),
        "(a) on its face": on_its_face(),
        "(b)": not_attained(),
        "(c)": weakly_infeasible(),
    }
    _rows = ["| problem | CLARABEL | SCS | proved |", "| --- | --- | --- | --- |"]
    proofs = {}
    for _name, _problem in _problems.items():
        _claims = [claim(_problem, solver) for solver in ("CLARABEL", "SCS")]
        _found = proofs[_name] = certify_problem(_problem)
        _interval = enclosure(_found.lower, _found.upper, 4)
        _rows.append(f"| {_name} | {' | '.join(_claims)} | {_interval} |")
    assert proofs["(a)"].lower <= 0 < 1 <= proofs["(a)"].upper  # no multiplier does better
    assert proofs["(a) on its face"].relative_gap < 1e-6
    assert -1e-2 < proofs["(b)"].lower <= 0 < proofs["(b)"].upper < 1e-2
    assert proofs["(c)"].upper == np.inf
    mo.md("\n".join(_rows))
    return (proofs,)


@app.cell
def _(with_a_gap):
    _problem = with_a_gap()
    (_x,) = _problem.variables()
    bounded = certify_problem(cp.Problem(_problem.objective, [*_problem.constraints, _x[1] <= 10]))
    tolerant = certify_problem(_problem, tolerance=1e-3)
    assert 0.9 < bounded.lower <= 1
    assert tolerant.upper < 0.01
    return bounded, tolerant


@app.cell(hide_code=True)
def _(bounded, proofs):
    _face, _weak = proofs["(a) on its face"], proofs["(c)"]
    mo.md(f"""
    **(a)** A lower bound needs a multiplier, and by our computation none proves more than 0. An
    upper bound needs a feasible point, which must have *x*₁ = 1 **exactly**, and solvers miss that.
    So the interval is wide, or has no ends at all. There are two ways out, and in both you tell the
    program something that you know:

    - *Go to the face.* The 0 forces a row of zeros. Say so, and leave that row out: the same
      feasible points, a smaller cone, and the interval {enclosure(_face.lower, _face.upper, 8)}.
    - *Bound the variable.* `bounds={{x: 10.0}}` says that only points with |*x*ᵢ| ≤ 10 matter. Of
      these the optimum is proved to lie in {enclosure(bounded.lower, bounded.upper, 8)}. You can
      find such multipliers by hand:

    {formulas("BOUNDED_MULTIPLIER")}

    With |*x*₂| ≤ 10 that is at least 1 − 10δ, for any δ > 0. For a free *x*₂ it is no bound at all.

    **(b)** The interval encloses the **infimum**. Its upper end comes from a feasible point, its
    lower end from a multiplier. That some point attains the optimum was not claimed, and is not
    true.

    **(c)** It is proved that the optimal value lies in {enclosure(_weak.lower, _weak.upper, 4)}.
    There is a multiplier for each number, but none for +∞, so the certificate does not claim that
    there is no feasible point.

    ### Why solvers go wrong here

    A solver meets constraints to within a tolerance. Write δ for the 0 in the middle of (a), and
    let it go to 0. The matrix is PSD if and only if *x*₁, *x*₂ and δ are ≥ 0 and δ*x*₂ ≥ (1 −
    *x*₁)²/4. For δ > 0 the optimum is 0, at *x* = (0, 1/(4δ)); for δ = 0 it is 1; for δ < 0 nothing
    is feasible.
    """)


@app.cell(hide_code=True)
def _(tolerant):
    mo.md(f"""
    The optimal point goes to infinity along the edge *x*₁ = 0, and in the limit only the line *x*₁
    = 1 is left of the feasible set. A value between 0 and 1 for (a) is the cost of a point that is
    feasible for a small δ > 0, but optimal for no δ. `certify_problem(problem, tolerance=1e-3)`
    asks openly about the problem in which the matrix plus *I*/1000 must be PSD. It proves that this
    optimum lies in **{enclosure(tolerant.lower, tolerant.upper, 2)}**.

    /// details | Check: what is the optimum of (b) with *x*₂ ≤ 100, and is it attained?
    *x*₁ ≥ 1/*x*₂ ≥ 1/100, and (1/100, 100) is feasible: 1/100, attained. A bound
    keeps the optimum from escaping to infinity, and changes its value only a little.
    ///

    ## 7.5 Why our dual needs no Slater

    The example with the bounded variable is a case of a general theorem.

    **Theorem.** Let *f*₀ be convex and continuous, its domain closed and **bounded**, and some *x*
    feasible. Then the supremum of *g* over 𝒦<sup>∗</sup> is *p*<sup>⋆</sup>: no gap, with Slater's
    condition or without.

    1. *The value set is closed.* Let reachable points converge to (*u*, *t*), and let *x*ᵢ reach
       the *i*-th of them. The domain is closed and bounded, so some subsequence of the *x*ᵢ
       converges to an *x* in it. Then *h* + *u* − *Fx* is in 𝒦, because 𝒦 is closed, and *f*₀(*x*)
       ≤ *t*, because *f*₀ is continuous. So *x* reaches the limit.
    2. *Separate with room to spare.* Let δ > 0. The point (0, *p*<sup>⋆</sup> − δ) is not
       reachable. Because the value set is closed, one of its points is nearest to that point. Put a
       plane through the nearest point, perpendicular to the segment between the two. The set
       lies behind the plane: otherwise, since it is convex, a short step from the nearest point
       into the set would come nearer. The unreachable point lies in front of the plane, at a
       positive distance:

    {formulas("STRICT_SEPARATION")}

    3. *Signs.* μ ≥ 0 and λ in 𝒦<sup>∗</sup>, as in step 4 of section 7.3. And μ ≠ 0: with μ = 0 the
       infimum would be positive, but a feasible *x* makes a point with *u* = 0 reachable, where the
       function is 0.
    4. *Read off the bound.* Divide by μ. As in step 6 there, *g*(λ/μ) > *p*<sup>⋆</sup> − δ. Such a
       λ exists for every δ > 0, and by weak duality *g* is never above *p*<sup>⋆</sup>. ∎

    ### Back to the M-step

    Here the letters are again those of chapters 2 and 3: λ is the trace weight, *p* the
    probabilities.

    Take the dual of chapter 3 as the problem: *p* is the variable, −*D*(*p*) the cost, *M*(*p*) ⪰ 0
    the constraint. Its domain is the cube [0, 1]<sup>*N*</sup>, closed and bounded; *D* is concave
    and continuous; and *p* = 1 is feasible, **whatever the data** (so is *p* = *b*/*c*: the anchors
    of chapter 4). The theorem applies. The multiplier of *M*(*p*) ⪰ 0 is a metric *A*, and the dual
    function is −*f*(*A*):

    {formulas("DUAL_OF_THE_DUAL")}

    because the logistic term is the largest *H*(*p*ₖ) + *p*ₖ*s*ₖ (section 3.3). So
    **inf *f* = max *D* for every trace weight λ ≥ 0**, and the maximum is attained, because a
    continuous function has a maximum on a closed and bounded set. In short:

    - For λ > 0 there is an optimal metric, and it brings its own *p* (section 3.7). That proof
      needs no separation theorem: it names the *p*.
    - For λ = 0 there may be no optimal metric, but there is still no gap.
    - A certificate needs **weak** duality only, and that needs nothing.

    Here are irises with four labels left: two *setosa*, one *versicolor*, one *virginica*. That is
    one similar pair for four features, and λ = 0.
    """)


@app.cell
def _():
    X, y = some_irises()
    kept = np.flatnonzero(y >= 0)[[0, 1, 3, 6]]
    labels = np.full(len(y), -1)
    labels[kept] = y[kept]
    objective = MStepObjective(PairSet.from_labels(X, labels), trace_weight=0.0)
    try:
        solve_m_step(objective)
    except OptimumNotAttained as error:
        u = error.direction
    assert abs(u @ objective.recession_matrix @ u) < 1e-9  # u'M(1)u = 0
    falling = [objective.value(theta * np.outer(u, u)) for theta in (0, 1, 10, 100, 1000)]
    assert np.all(np.diff(falling) < 0)

    weights = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 1e-5]
    metrics = [solve_m_step(objective.with_trace_weight(w), tol=1e-7).metric for w in weights]
    certificates = [certify(objective, A) for A in metrics]  # all of them for trace weight 0
    best_lower = max(each.dual_value for each in certificates)
    best_upper = min(each.primal_value for each in certificates)
    assert best_lower <= best_upper < best_lower + 0.02
    return best_lower, best_upper, falling


@app.cell(hide_code=True)
def _(falling):
    mo.md(f"""
    `solve_m_step` refuses, and names a direction *u* along which *f* falls forever: from
    {falling[0]:.2f} at *A* = 0 to {falling[-1]:.2f} at 1000*uu*<sup>⊤</sup>. So take the optimal
    metrics for λ > 0 instead, let λ go to 0, and certify **each of them for λ = 0**:
    """)


@app.cell(hide_code=True)
def _(best_lower, best_upper):
    mo.md(f"""
    The metrics grow without bound, and none of them is optimal. But each of them, with its own *p*,
    encloses the infimum of *f* for λ = 0: together they prove that it lies in
    **{enclosure(best_lower, best_upper, 4)}**.

    /// details | Check: why does the theorem of 7.5 not apply to (a)?
    The domain of (a) is not bounded: *x*₂ may be as large as you like, and the bounds that
    multipliers prove, 1 − δ*x*₂, are worth nothing there.
    ///

    ## Questions

    /// details | 1. *f*₀ is not convex. Which parts of this chapter remain true?
    Sections 7.1 and 7.2: the dual function is concave, and every *g*(λ) with λ in 𝒦<sup>∗</sup> is
    a bound. In the proof of 7.3 step 1 fails: the value set may have dents, and a line from below
    does not get into a dent. So a gap is possible, Slater or not.
    ///

    /// details | 2. In (c) write *x*₁ for *x*, *x*₂ for both 1, and minimize *x*₂. The two optima?
    The 0 forces *x*₂ = 0, so the primal optimum is 0, attained. The dual asks for *Z*₁₁ = 0 and
    2*Z*₁₂ = 1, which no PSD matrix has: it is infeasible, its value −∞. Not even a bad lower bound
    can be proved by a multiplier.
    ///

    /// details | 3. λ = 0, and *f* falls forever along *u*. Does the dual have a Slater point?
    No. Along *uu*<sup>⊤</sup> the slope of *f* goes to *u*<sup>⊤</sup>*M*(1)*u*, because σ goes to
    1 for every pair that *u* sees. *M*(1) is PSD and *f* falls, so that this is 0, and therefore,
    for every *p* in [0, 1]<sup>*N*</sup>:

    {formulas("NO_SLATER_POINT")}

    So *M*(*p*) is never positive definite. It had to be so: if the dual had a Slater point, then by
    section 7.3 it would have an optimal multiplier, and that is a metric that minimizes *f*.
    ///

    ## Exercise

    [Problem set 7](../exercises/set_7_duality.py): derive the dual of a small program by hand, then
    state a small semidefinite program and its dual in CVXPY and certify both. Last, break it: build
    a semidefinite program with a gap of your own choice. `seraph-cvx check-exercise set7 FILE` says
    what is wrong.
    """)


if __name__ == "__main__":
    app.run()

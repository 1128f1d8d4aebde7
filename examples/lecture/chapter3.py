"""3 The dual, derived"""

import marimo

app = marimo.App(app_title="3 The dual, derived")

with app.setup:
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import formulas, some_irises

    from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step, state_m_step


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 3 The dual, derived

    **Goal.** You can derive the dual of the M-step on a blackboard, read it as a maximum-entropy
    problem, and say why its multiplier is the metric.

    **Time.** 25 minutes. **You need** chapter 2, and from chapter 1 that the cone is its own dual
    (question 2 there).

    **In Boyd and Vandenberghe's book:** 3.3 (conjugates), 5.1 and 5.2 (the dual), 5.5.3 (KKT),
    5.7.1 (new variables).

    We start from the M-step as a minimization, with one logistic term per pair:

    {formulas("M_STEP_ONE_TERM")}

    Recall the letters: *c*ₖ > 0 is the weight of pair *k*, *b*ₖ (from 0 to *c*ₖ) the part of it
    that says "dissimilar", *R* = λ*I* the penalty.

    ## 3.1 Give each score a name

    The metric *A* sits inside *N* logistic terms. Pull it out: let each score *s*ₖ be a variable of
    its own, tied to *A* by an equation. The problem is the same, but now it has **constraints**.

    {formulas("SPLIT_M_STEP")}

    ## 3.2 The Lagrangian

    Allow the equations to be broken, at a price. Equation *k* gets a multiplier, which we write as
    *c*ₖ*p*ₖ; what *p*ₖ means will become clear. *A* ⪰ 0 stays a constraint.

    {formulas("LAGRANGIAN")}

    Where the equations hold, the price is 0 and Λ = *f*(*A*), whatever *p* is. So the infimum of Λ
    over **all** *A* ⪰ 0 and *s* is at most the minimum of *f*: a lower bound for each *p*.

    ### Sort the terms

    What belongs to *s* is a sum over pairs; what belongs to *A* is linear:

    {formulas("SORTED_LAGRANGIAN")}

    So the minimum splits: one number *s*ₖ at a time, and the matrix *A* by itself.

    ## 3.3 Over the scores: the entropy appears

    Minimize the logistic term minus *ps* over the number *s*. This is convex in *s* (chapter 2), so
    for 0 < *p* < 1 it is least where its derivative σ(*s*) − *p* is zero:

    {formulas("TOUCHING_POINT")}

    Collect the first and the last logarithm: what is left is the **entropy** of *p*.

    {formulas("LOGISTIC_CONJUGATE")}

    At *p* = 0 and *p* = 1 no *s* is best, but the infimum is 0 = *H*(0) = *H*(1). The **conjugate**
    of a function is the largest *ps* minus the function, so that of the logistic term is
    −*H*(*p*). In a picture: of all lines with slope *p*, the one that touches the curve from
    below meets the vertical axis at height *H*(*p*).
    """)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    A line steeper than 1 or falling crosses the curve however low it starts: outside [0, 1] the
    infimum is −∞. So *p*ₖ is a number between 0 and 1.

    ## 3.4 Over the metric: a constraint appears

    ⟨*M*(*p*), *A*⟩ is linear in *A*, and *A* may be any metric. Either it can be made negative, and
    then, with multiples of that *A*, as low as we like; or it is never negative, and *A* = 0 is
    best. By chapter 1 the second case is that *M*(*p*) is PSD.

    {formulas("CONE_INFIMUM")}

    ## 3.5 The dual: maximum entropy

    What is left of Λ is the lower bound *D*(*p*). The best bound is the **dual**:

    {formulas("DUAL")}

    Read it in words. Give each pair a probability *p*ₖ of being dissimilar. Be **as undecided as
    possible**: maximize the entropy, and pay η per unit of weight that you call dissimilar beyond
    what was told (β in all). But respect the data: in every direction *v*, the spread of the pairs
    that you call dissimilar, together with the penalty *R*, must not be less than that of the pairs
    told (or supposed, by soft labels) to be so, which is *G*.

    No metric appears in it. Labels come in through *G* and β only. And it is a convex problem too:
    *H* is concave, and *M*(*p*) is affine in *p*.

    ## 3.6 Weak duality: a proof anyone can check

    Subtract *D*(*p*) from *f*(*A*), for any metric *A* and any feasible *p*:

    {formulas("WEAK_DUALITY")}

    Each term of the sum is ≥ 0 by 3.3, the inner product by 3.4. So *f*(*A*) − *D*(*p*), the
    **duality gap**, bounds how far *f*(*A*) is above the optimum, no matter how *A* was found.

    Let us see it on irises. `certify` makes a feasible *p* from any metric (chapter 4 explains how)
    and returns both bounds. Below, *A* is θ times the optimal metric.
    """)


@app.cell
def _():
    X, y = some_irises()
    pairs = PairSet.from_labels(X, y)
    objective = MStepObjective(pairs, trace_weight=1.0)
    optimum = solve_m_step(objective, tol=1e-9)
    return X, objective, optimum, pairs


@app.cell(hide_code=True)
def _(objective, optimum):
    _thetas = np.unique([*np.linspace(0, 2, 41), 1.0])
    _found = [certify(objective, _theta * optimum.metric) for _theta in _thetas]

    def _draw(theta):
        here = certify(objective, theta * optimum.metric)
        high = [each.primal_value for each in _found]
        low = [each.dual_value for each in _found]
        bounds = Panel(
            "The optimum lies between the bounds",
            ("θ", 0, 2),
            ("value", min(low), max(high)),
            names={ORANGE: "f(A)", BLUE: "D(p)", GRAY: "optimum"},
        )
        bounds.line(_thetas, high, ORANGE)
        bounds.line(_thetas, low, BLUE)
        bounds.line([0, 2], [optimum.value] * 2, GRAY, "6 4")
        bounds.line([theta] * 2, [here.dual_value, here.primal_value], BLACK)
        gaps = Panel(
            f"The gap at θ = {theta:g}: {here.duality_gap:.2g}",
            ("θ", 0, 2),
            ("f(A) − D(p)", 1e-8, 1e3),
            log="y",
        )
        gaps.line(_thetas, [each.duality_gap for each in _found], GREEN)
        gaps.dots(theta, here.duality_gap, BLACK, 7)
        return bounds, gaps

    Moving(
        "Multiple θ of the optimal metric:",
        [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.3, 1.6, 2.0],
        0.6,
        _draw,
    )


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## 3.7 Strong duality: the gap closes

    The gap is zero if and only if each of its nonnegative terms is. In the sum that means that *s*ₖ
    is the minimizer of 3.3, so *p*ₖ = σ(*s*ₖ). These are the optimality conditions:

    {formulas("OPTIMALITY")}

    ### Can they always be met?

    Put *p*ₖ = σ(*s*ₖ). Then *M*(*p*) is nothing but the **gradient** of
    *f* at *A*, since σ is the derivative of the logistic term:

    {formulas("GRADIENT")}

    If *A* minimizes *f* over the cone,

    - the slope toward any metric *C* is ≥ 0: ⟨∇*f*(*A*), *C* − *A*⟩ ≥ 0;
    - *C* = 0 and *C* = 2*A* give ⟨∇*f*(*A*), *A*⟩ = 0; then ⟨∇*f*(*A*), *C*⟩ ≥ 0 for all *C*, so
      that ∇*f*(*A*) is PSD.

    So every optimal metric brings its own *p*, feasible and with gap 0. For λ > 0 there always is
    an optimal metric, because *f*(*A*) ≥ λ tr(*A*), since no surprise is negative, and that grows
    without bound in every direction of the cone. For λ = 0 there may be none: *f* can fall forever.
    Even then the best lower bound is the infimum of *f* (section 7.5).
    """)


@app.cell
def _(objective, optimum):
    M = objective.gradient(optimum.metric)  # M(p) at p = sigma(s)
    assert np.linalg.eigvalsh(M)[0] > -1e-4 * objective.trace_weight
    assert abs(np.sum(M * optimum.metric)) < 1e-4
    assert optimum.certificate.relative_gap < 1e-8


@app.cell(hide_code=True)
def _():
    mo.md("""
    ### Complementary slackness

    ⟨*M*(*p*), *A*⟩ = 0 means more than it seems to. With *A* = *LL*<sup>⊤</sup> it is the trace of
    *L*<sup>⊤</sup>*ML*, which is PSD. A PSD matrix with the trace 0 is 0, so every column *v* of
    *L* has *v*<sup>⊤</sup>*Mv* = 0. For a PSD *M* that means *Mv* = 0, and the product *MA* is 0.
    So *A* and *M* commute, they share eigenvectors, and in each direction at least one of the two
    eigenvalues is 0. No direction
    is used by the metric **and** has slack in the dual.
    Lower the trace weight λ and see directions change sides:
    """)


@app.cell(hide_code=True)
def _(objective, pairs):
    def _draw(part):
        weight = part * objective.critical_trace_weight
        tried = MStepObjective(pairs, trace_weight=weight)
        best = solve_m_step(tried, tol=1e-9).metric
        slack = tried.gradient(best)
        _, vectors = np.linalg.eigh(best / np.trace(best + 1e-9 * np.eye(4)) - slack / weight)
        panels = []
        for matrix, title, color in (
            (best, f"The metric A, λ = {weight:.3g}", BLUE),
            (slack, "The slack M(p)", ORANGE),
        ):
            sizes = np.diag(vectors.T @ matrix @ vectors)[::-1]
            top = 1.1 * max(np.max(sizes), 1e-3)
            panel = Panel(
                title,
                ("direction", 0.5, 4.5),
                ("eigenvalue", 0, top),
                ticks={"x": {k: str(k) for k in range(1, 5)}},
            )
            for k, size in enumerate(sizes, start=1):
                panel.bar((k - 0.4, k + 0.4), (0, size), color)
            panels.append(panel)
        return panels

    Moving(
        "λ, as a share of the least one with A = 0:",
        [1.0, 0.7, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005],
        0.1,
        _draw,
    )


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## 3.8 The multiplier is the metric

    Now start from the dual and forget where it came from. Of its constraints 0 ≤ *p* ≤ 1 needs no
    multiplier: at both ends the slope of *H* is infinite, so the best *p* lies between them. The
    other one is *M*(*p*) ⪰ 0, and its multiplier is a PSD matrix; call it *A*. Its Lagrangian is
    *D*(*p*) + ⟨*A*, *M*(*p*)⟩, and we look for its stationary points:

    {formulas("DUAL_SLOPE")}

    The slope is zero if and only if *p*ₖ = σ(*s*ₖ) with *s*ₖ = *v*ₖ<sup>⊤</sup>*Av*ₖ − η: that is
    the model (8), the probability of "dissimilar". **Neither the logistic function nor the metric
    had to be assumed.** The first comes from the entropy, the second from the constraint. The most
    undecided *p* that the data permit leads to both: the metric is the price of respecting the
    data.

    Let CVXPY solve the dual, which knows no metric, and ask for the multiplier.
    """)


@app.cell
def _(X, objective, optimum, pairs):
    dual = state_m_step(objective, "dual")
    dual.solve(solver="CLARABEL")
    multiplier = dual.constraints[0].dual_value
    assert np.isclose(dual.value, optimum.value, rtol=1e-6)
    assert np.allclose(multiplier, optimum.metric, atol=1e-3 * np.trace(optimum.metric))

    by_name = {variable.name(): variable.value for variable in dual.variables()}
    rows = pairs.labeled
    V = X[rows[:, 0]] - X[rows[:, 1]]
    scores = np.sum((V @ optimum.metric) * V, axis=1) - objective.threshold
    assert np.allclose(by_name["p"], 1 / (1 + np.exp(-scores)), atol=1e-3)
    return dual, multiplier


@app.cell(hide_code=True)
def _(dual, multiplier, optimum):
    _apart = np.max(np.abs(multiplier - optimum.metric))
    mo.md(f"""
    The M-step has the value **{optimum.value:.6f}** and its dual **{dual.value:.6f}**. The entries
    of the multiplier differ from those of the metric by at most **{_apart:.0e}**.
    """)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## Questions

    /// details | 1. A multiplier of an equation may have any sign. Why is *p* in [0, 1]?
    Because outside [0, 1] the minimum over *s*ₖ is −∞, a useless bound. The restriction is not
    imposed; it is where the bound says anything.
    ///

    /// details | 2. Can you name two points *p* that are feasible, whatever the data?
    *p* = 1, because *c*ₖ ≥ *b*ₖ leaves a sum of PSD matrices in *M*(1). And *p*ₖ = *b*ₖ/*c*ₖ, as
    told: there *M* = *R*. So the dual is always feasible, and every M-step has a finite lower
    bound. Chapter 4 uses both as anchors.
    ///

    /// details | 3. What does the dual look like where *A* is positive definite at the optimum?
    Then *M*(*p*) = 0 by complementary slackness:

    {formulas("MOMENTS")}

    The moments under *p* match the moments of the data, up to the penalty. That is the classical
    form of maximum entropy; the inequality is what makes room for metrics of lower rank.
    ///

    ## Exercise

    [Problem set 3](../exercises/set_3_dual.py): three problems, one by hand, one in CVXPY and one
    in which you break something. `seraph-cvx check-exercise set3 FILE` says what is wrong.

    **Longer.** [Exercise 4](../exercises/exercise_4_weak_duality.py), TODO 1 and 2: compute
    *D*(*p*) and *M*(*p*). *Hint:* the two feasible points of question 2 are your first test; what
    must *D* and *M* be there? TODO 3 belongs to chapter 4; until then `seraph-cvx check-exercise 4
    FILE` stops at it, if both are right. [Exercise 5](../exercises/exercise_5_trace_weight.py) asks
    what the conditions of section 3.7 say about *A* = 0, and shows an *f* that falls forever.
    """)


if __name__ == "__main__":
    app.run()

"""4 The certificate"""

import marimo

app = marimo.App(app_title="4 The certificate")

with app.setup:
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import ceiling, floor, formulas, some_irises

    from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step
    from seraph_cvx.numerics.psd_cone import project
    from seraph_cvx.proof.verified_psd import is_proven_positive_definite
    from seraph_cvx.solvers.solution import gradient_method


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 4 The certificate

    **Goal.** You can turn any metric, from any solver, into a proof of how far it is from the
    optimum, and you can say what rounding does to that proof.

    **Time.** 25 minutes. **You need** the dual of chapter 3.

    **In Boyd and Vandenberghe's book:** 5.5.1 (certificates of suboptimality), 5.5.2 and 5.5.3
    (slackness, KKT).

    ## 4.1 Why believe a solver?

    A solver stops and says "optimal". There is something better than trust: **every** feasible
    point *p* of the dual bounds *f* from below, for all metrics at once.

    {formulas("DUAL", "CERTIFICATE")}

    So a metric *A* and a feasible *p* enclose the optimum, and it does not matter where they came
    from. *A* is what the solver returned. Where does *p* come from?

    ## 4.2 From optimality conditions to a gap

    At the optimum *p* belongs to the metric: *p*ₖ = σ(*s*ₖ), the probability of "dissimilar". Take
    the same *p* at **any** metric *A*. Then the tangent of section 3.3 touches the logistic term of
    every pair just at its score, and of the gap (section 3.6) only the linear part is left:

    {formulas("GAP_AT_A_METRIC")}

    Two of the conditions of Karush, Kuhn and Tucker (KKT) are met by this choice; the other two
    are in the formula. *Feasible:* ∇*f*(*A*) ⪰ 0. *Complementary:* ⟨∇*f*(*A*), *A*⟩ = 0.
    Away from the optimum the second one is no longer zero: it **is** the gap. But on the way to the
    optimum ∇*f*(*A*) mostly has a negative eigenvalue, and then *p* is not feasible and proves
    nothing. Section 4.3 repairs that; first see the repaired bound at work.
    """)


@app.cell
def _():
    X, y = some_irises()
    objective = MStepObjective(PairSet.from_labels(X, y))
    best = solve_m_step(objective, tol=1e-11)
    return best, objective


@app.cell
def _(objective):
    # A first-order method (chapter 5) from A = I, stopped early; the certificate judges each.
    counts = [0, 5, 20, 50, 80, 100, 120, 150, 180, 220, 260, 300, 350]
    path = [np.eye(4)] + [
        gradient_method("fista", objective, 1e-12, k, np.eye(4)).metric for k in counts[1:]
    ]
    certificates = [certify(objective, A) for A in path]
    return certificates, counts, path


@app.cell(hide_code=True)
def _(best, certificates):
    # In logarithms: the proved gap as a power of the true one.
    _optimum = best.certificate.dual_value
    _gaps = np.array([(c.primal_value - _optimum, c.duality_gap) for c in certificates])
    power = np.polyfit(*np.log(_gaps.T), 1)[0]
    assert np.all(_gaps[:, 1] >= _gaps[:, 0])
    assert 0.4 < power < 0.7
    return (power,)


@app.cell(hide_code=True)
def _(best, certificates, counts):
    _high = np.array([c.primal_value for c in certificates])
    _low = np.array([c.dual_value for c in certificates])
    _true = np.maximum(_high - best.certificate.dual_value, 1e-12)

    def _draw(steps):
        k = counts.index(steps)
        steps_shown = ("step", 0, counts[-1])
        band = Panel(
            "The optimum lies in the gray band",
            steps_shown,
            ("value", np.min(_low), np.max(_high)),
            names={ORANGE: "f(A)", BLUE: "lower bound D"},
        )
        band.area(counts, _low, _high, GRAY)
        band.line(counts, _high, ORANGE)
        band.line(counts, _low, BLUE)
        band.line([steps] * 2, [_low[k], _high[k]], BLACK)
        gaps = Panel(
            f"At step {steps} proved: {_high[k] - _low[k]:.2g}",
            steps_shown,
            ("gap", 1e-10, 1e3),
            log="y",
            names={GREEN: "proved gap", GRAY: "true gap"},
        )
        gaps.line(counts, _high - _low, GREEN)
        gaps.line(counts, _true, GRAY, "6 4")
        gaps.dots(steps, _high[k] - _low[k], BLACK, 7)
        return band, gaps

    Moving("Step:", counts, 50, _draw)


@app.cell(hide_code=True)
def _(power):
    mo.md(f"""
    Blue and orange are bounds at every step, not only at the end. The proved gap is never below the
    true one, and falls more slowly: here like its power {power:.2f}, roughly the square root.

    ## 4.3 Anchors

    Two dual points are always feasible, whatever the data: *p* = 1 (call every pair dissimilar) and
    *p* = *b*/*c* (repeat the labels). *M* is affine in *p*, so between *p* and an anchor the matrix
    is a mixture. Move from *p* toward the anchor until it is PSD.

    {formulas("ANCHORS")}
    """)


@app.cell
def _(best, objective, path):
    A = path[0]  # the Euclidean metric
    gradient = objective.gradient(A)  # M(p), here with a negative eigenvalue
    value_at_p = objective.value(A) - np.sum(gradient * A)  # D(p)
    value_at_one = -objective.threshold * objective.recession_total  # D(1)
    taus = np.linspace(0.0, 1.0, 101)
    mixtures = [tau * gradient + (1 - tau) * objective.recession_matrix for tau in taus]
    least = np.array([np.linalg.eigvalsh(mixed)[0] for mixed in mixtures])
    chord = taus * value_at_p + (1 - taus) * value_at_one
    assert least[-1] < 0
    assert chord[-1] > best.value  # D at a point that is not feasible is no bound
    return chord, least, taus


@app.cell(hide_code=True)
def _(best, chord, least, taus):
    def _draw(tau):
        k = round(100 * tau)
        color = GREEN if least[k] >= 0 else ORANGE
        sign = Panel("The least eigenvalue of M", ("τ", 0, 1), ("eigenvalue", least[-1], least[0]))
        sign.line([0, 1], [0, 0], BLACK, width=1)
        sign.line(taus, least, BLUE)
        sign.dots(tau, least[k], color, 7)
        word = "a lower bound" if least[k] >= 0 else "not feasible: no bound"
        bound = Panel(
            f"At τ = {tau}: {word}",
            ("τ", 0, 1),
            ("from D(1) to D(p)", min(chord), max(chord)),
            names={BLUE: "proved", GRAY: "not feasible", ORANGE: "the optimum"},
        )
        proved = least >= 0
        bound.line(taus[proved], chord[proved], BLUE)
        bound.line(taus[~proved], chord[~proved], GRAY, "2 5")
        bound.line([0, 1], [best.value] * 2, ORANGE, "6 4")
        bound.dots(tau, chord[k], color, 7)
        return sign, bound

    Moving(
        "From the anchor 1 (τ = 0) to p (τ = 1):", [round(k / 10, 1) for k in range(11)], 0.3, _draw
    )


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    *D* is concave, so it lies above the chord that is drawn: the chord is a bound too, at no cost.
    Beyond the largest feasible τ the dotted line even passes the optimum: without feasibility *D*
    proves nothing.

    ### The longest step is the best

    The entries of *p*<sub>τ</sub> lie between those of *p* and 1. So *D* does not fall as τ grows:

    {formulas("LONGER_STEP")}

    So for this anchor the largest feasible τ gives the best bound, and one eigenvalue gives that τ
    (the exercise). Near the optimum *M*(*p*) is nearly PSD, and if *M*(1) is positive definite, τ
    comes close to 1 and the gap closes. `certify` tries both anchors and keeps the better bound.
    (From *b*/*c* a shorter step can be the better one: the proof above needs the anchor 1.)

    ## 4.4 Rounding

    "*M* is PSD" and "*D* ≤ *f*" are statements about real numbers. A computer has doubles, and
    rounds each operation. Logarithms and exponentials are enclosed between two doubles. For sums,
    products and signs of eigenvalues, two tools turn computed numbers into theorems:

    {formulas("ROUNDING", "PSD_PROOF")}

    For a matrix of norm 1 a computed eigenvalue of 10⁻¹⁷ says nothing about the true one's sign.
    The second tool does: let *C* = *B* − δ*I* − *FF*<sup>⊤</sup> be the part of *B* that is left
    over. If its norm is below δ, then δ*I* + *C* is positive definite and so is *B*, which exceeds
    it by *FF*<sup>⊤</sup>, whatever *F* is. *C* is rounded as well; the first tool bounds by how
    much, and that is added. Try it on 6 × 6 matrices with one eigenvalue of 10⁻⁸, 10⁻⁹, …, 10⁻¹⁹:
    """)


@app.cell
def _():
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]

    def is_proved(exponent):
        B = (basis * [1, 1, 1, 1, 1, 10.0**-exponent]) @ basis.T
        return is_proven_positive_definite((B + B.T) / 2, np.zeros(6))

    proved = [exponent for exponent in range(8, 20) if is_proved(exponent)]
    assert 8 in proved
    assert 19 not in proved
    return (proved,)


@app.cell(hide_code=True)
def _(proved):
    mo.md(f"""
    It is proved down to 10<sup>−{max(proved)}</sup>. Below that there is **no verdict** but
    silence: the matrix may well be positive definite, but this proof, in double precision, cannot
    tell.

    ## 4.5 What a proof in floating point is

    - It is about the doubles that were given, not about the data you meant.
    - The answer is a factor *L*, because *LL*<sup>⊤</sup> is PSD by construction; *f* is bounded
      from above there, every error rounded upward.
    - *p* need not be accurate, only feasible. But *H*(*p*) and *M*(*p*) must belong to the same
      doubles *p*.
    - Bounds are moved outward, never clamped. Where less is proved than was asked for, the answer
      does not get the status `certified`.

    The certificate depends on the matrix and on the data, not on who found it. Round the solver's
    answer to two decimals, go back to the cone, and it says what that costs:
    """)


@app.cell(hide_code=True)
def _(best, objective):
    _judged = {"as solved": best.metric, "two decimals": np.round(best.metric, 2)}
    _rows = [
        f"| {_name} | {floor(_c.dual_value, 9)} | {ceiling(_c.primal_value, 9)} "
        f"| {ceiling(_c.relative_gap, 2)} |"
        for _name, _A in _judged.items()
        for _c in [certify(objective, project(_A))]
    ]
    _head = ["| metric | inf *f* ≥ | inf *f* ≤ | relative gap |", "| --- | --- | --- | --- |"]
    mo.md("\n".join([*_head, *_rows]))


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## Questions

    /// details | 1. The true gap is 10⁻⁸, the proved one is 10⁻⁴. Who is wrong?
    Nobody. The proved gap is an upper bound on the true one. Let *A* be off the optimum by a small
    step *C* within the face in which the optimum lies: the metrics that see no more directions than
    it does. There ⟨∇*f*, *C*⟩ = 0 at the optimum, so *f* rises only with the square of the step:
    10⁻⁴ in *A* costs about 10⁻⁸. But the gradient, and with it *p* and the bound, moves by about
    10⁻⁴. A step *vv*<sup>⊤</sup> off the face is another matter: where *v*<sup>⊤</sup>∇*f*(*A*)*v*
    > 0, *f* rises in proportion to its length.
    ///

    /// details | 2. Why is *p* = *b*/*c* useless as an anchor if λ = 0 and ν = 0?
    Then *R* = 0 and *M*(*b*/*c*) = 0. A mixture of 0 and *M*(*p*) has a negative eigenvalue as soon
    as *M*(*p*) has one: no step toward *p* is feasible.
    ///

    /// details | 3. A lower bound comes out above the upper one. What should a program do?
    Raise an error. It is impossible, so the code or one of its assumptions is wrong. To set the gap
    to zero would hide that, and call the answer perfect.
    ///

    ## Exercise

    [Problem set 4](../exercises/set_4_certificate.py): three problems, one by hand, one in CVXPY
    and one in which you break something. `seraph-cvx check-exercise set4 FILE` says what is wrong.

    **Longer.** [Exercise 4](../exercises/exercise_4_weak_duality.py), TODO 3: make a feasible *p*
    from any metric; no bound of 100 random metrics may be above any of their values. *Hint:*
    suppose first that *M*(1) were the identity. How far can you go then, and which change of
    coordinates makes it so? `seraph-cvx check-exercise 4 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

"""10 Certificates for any problem"""

import marimo

app = marimo.App(app_title="10 Certificates for any problem")

with app.setup:
    import warnings
    from fractions import Fraction

    import cvxpy as cp
    import marimo as mo
    import numpy as np
    from drag import Drag
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from failures import EXAMPLES, GALLERY, WELL_POSED
    from lecture import formulas
    from live import (
        ask_all,
        draw_digits,
        installed,
        live_answer,
        what_is_proved,
        when_live,
    )

    from seraph_cvx import certify_problem


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 10 Certificates for any problem

    **Goal.** You can say of any convex problem in CVXPY what a solver claims, what is proved, and
    why the two differ; and you know the kinds of problems for which no multipliers close the gap.

    **Time.** 30 minutes. **You need** the cone program of chapter 7, the cones of chapter 8, and
    the rounding of chapter 4.

    **In Boyd and Vandenberghe's book:** 5.5.1 (certificates), 5.8 and 5.9.4 (infeasibility), 5.9
    (cone programs).

    ## 10.1 One certificate for all

    Chapter 4 proved how good a metric is. Its proof knew the M-step well: two anchors, one
    matrix. CVXPY turns **every** problem that passes its rules into one form (chapter 8), so one
    certificate for that form serves them all.

    {formulas("CONE_PROGRAM", "CONE_PROGRAM_DUAL", "CONE_PROGRAM_GAP")}

    The optimum is the infimum of *c*<sup>⊤</sup>*x*. Two separate statements enclose it (to
    maximize, change the sign of *c*, and they change places):

    1. Any feasible *x*, however it was found, proves that the optimum is **at most**
       *c*<sup>⊤</sup>*x*.
    2. Any feasible λ, however it was found, proves that the optimum is **at least** −⟨*h*, λ⟩: that
       is the last line.

    A solver's answer is a good place to look for such points. It is never evidence by itself.

    ## 10.2 Drag a dual point

    Here is a problem small enough to solve by hand: of all metrics of three features that satisfy
    these two equations, which has the smallest trace?

    {formulas("SMALLEST_TRACE")}

    The metric in which every entry is 1/2 is PSD and meets both equations. So the optimum is **at
    most** 3/2. Two multipliers, λ₁ and λ₂, one for each equation, prove how low it can be. (In the
    form of 10.1 they would be −2λ₁ and −2λ₂.)

    {formulas("TRACE_BOUND")}

    *B*₁ has ones in the places (1, 2), (2, 1), (2, 3) and (3, 2), so that
    ⟨*B*₁, *A*⟩ = 2(*A*₁₂ + *A*₂₃) = 2, and *B*₂ has ones in (1, 3) and (3, 1), so that
    ⟨*B*₂, *A*⟩ = 1. If the slack *M*(λ) is PSD, then ⟨*M*(λ), *A*⟩ ≥ 0 (question 2 of chapter 1),
    and 2λ₁ + λ₂ is a lower bound. When is it PSD?

    ### The slack as a sum of squares

    Multiply this out:

    {formulas("TRACE_SQUARES")}

    1. *If* both fractions are ≥ 0, this is a sum of squares, so *M*(λ) is PSD.
    2. *Only if:* *v* = (1, 0, −1) leaves 2(1 + λ₂) of it, and *v* = (1, 2λ₁, 1) leaves
       2(1 − λ₂ − 2λ₁²). If one of them is negative, that *v* **refutes** that *M*(λ) is PSD.

    So the feasible set is what lies between a line and a parabola: a slice of the PSD cone.

    ### Your point

    Drag the point, or use the arrow keys or the two sliders. If your point is feasible, it proves a
    bound: all points on the dashed line have the same one, those on the dotted line have 3/2.
    """)


@app.cell(hide_code=True)
def _():
    Drag()


@app.cell
def _():
    def judge(lam_1, lam_2):
        """The bound that a pair of multipliers proves, or None and a v with v'Mv < 0."""
        flat, bent = 1 + lam_2, 1 - lam_2 - 2 * lam_1**2
        if min(flat, bent) >= 0:
            return 2 * lam_1 + lam_2, None
        return None, (1, 0, -1) if flat < bent else (1, 2 * lam_1, 1)

    def slack(lam_1, lam_2):
        return [[1, -lam_1, -lam_2], [-lam_1, 1, -lam_1], [-lam_2, -lam_1, 1]]

    def quadratic(v, M):
        return sum(v[i] * M[i][j] * v[j] for i in range(3) for j in range(3))

    grid = [Fraction(k, 16) for k in range(-24, 25)]
    judged = {(first, second): judge(first, second) for first in grid for second in grid}
    for lam, (_, v) in judged.items():
        if v is None:
            assert np.linalg.eigvalsh(np.array(slack(*lam), dtype=float))[0] > -1e-12
        else:
            assert quadratic(v, slack(*lam)) < 0
    best = max(bound for bound, v in judged.values() if v is None)
    assert best == Fraction(3, 2)  # at (1/2, 1/2): nothing is left open
    return (judge,)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ### Why you may believe the page

    Your point is rounded to multiples of 1/64. All that is
    computed from it are sums and products of whole numbers below 2⁵³, which doubles hold exactly.
    No rounding takes place, so the answer is a proof and not a measurement. The orange line is the
    proof that a point is **not** feasible: with that *v*, *v*<sup>⊤</sup>*M*(λ)*v* ≥ 0 is a linear
    inequality in λ; all feasible points meet it and yours does not. The PSD cone is the set of the
    matrices that meet all such inequalities, one for each *v*.

    ## 10.3 From a solver's multipliers to a proof

    You can reach 3/2 because 1/2 happens to be a multiple of 1/64. A solver returns doubles near
    the boundary, which may lie on **either side** of it. Where *M*(λ) has a negative eigenvalue,
    even one of −10⁻⁹, the number 2λ₁ + λ₂ proves nothing and may well be too high. So repair λ
    first, as in chapter 4. Here λ = 0 is an anchor, since *M*(0) = *I*:

    {formulas("SHRUNK")}

    Take the largest τ ≤ 1 for which *M*(τλ) is PSD; the bound is then τ(2λ₁ + λ₂). Below, SCS is
    stopped after more and more steps, and everything after it is exact, in fractions.
    """)


@app.cell
def _(judge):
    A = cp.Variable((3, 3), PSD=True)
    smallest_trace = cp.Problem(cp.Minimize(cp.trace(A)), [A[0, 1] + A[1, 2] == 1, A[0, 2] == 0.5])

    def multipliers(steps):
        """What SCS takes for the best λ after so many steps: exactly what its doubles are."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says itself that this is not yet accurate
            smallest_trace.solve(
                solver="SCS", max_iters=steps, eps=1e-12, acceleration_lookback=0, warm_start=False
            )
        prices = [float(equation.dual_value) for equation in smallest_trace.constraints]
        return [-Fraction(price) / 2 for price in prices]

    def repaired(lam):
        """Nearly the largest τ ≤ 1 for which τλ is feasible, by halving an interval."""
        if judge(*lam)[1] is None:
            return Fraction(1)
        low, high = Fraction(0), Fraction(1)
        for _ in range(60):
            tau = (low + high) / 2
            low, high = (tau, high) if judge(tau * lam[0], tau * lam[1])[1] is None else (low, tau)
        return low

    stops = [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40]
    found = {steps: multipliers(steps) for steps in stops}
    claimed = {steps: 2 * lam[0] + lam[1] for steps, lam in found.items()}
    taus = {steps: repaired(lam) for steps, lam in found.items()}
    bounds = {steps: taus[steps] * claimed[steps] for steps in stops}
    assert all(bound <= Fraction(3, 2) for bound in bounds.values())  # exactly
    too_high = [steps for steps in stops if claimed[steps] > Fraction(3, 2)]
    assert all(Fraction(3, 2) - bounds[k] < claimed[k] - Fraction(3, 2) for k in too_high)
    return bounds, claimed, found, stops, taus, too_high


@app.cell(hide_code=True)
def _(bounds, claimed, found, stops, taus):
    def _draw(steps):
        steps = int(steps)
        x, y = (float(part) for part in found[steps])
        tau = float(taus[steps])
        plane = Panel("From λ toward the anchor 0", ("λ₁", -1.1, 1.1), ("λ₂", -1.2, 1.2))
        edge = np.linspace(-1, 1, 61)
        plane.area(edge, -1, 1 - 2 * edge**2, BLUE)
        plane.line(edge, 1 - 2 * edge**2, BLUE)
        plane.line([0, tau * x], [0, tau * y], GREEN)
        plane.dots(x, y, GREEN if taus[steps] == 1 else ORANGE, 7)
        plane.dots(tau * x, tau * y, BLACK, 7, hollow=True)
        word = "feasible" if taus[steps] == 1 else f"1 − τ = {float(1 - taus[steps]):.0e}"
        errors = Panel(
            f"After {steps} steps: {word}",
            ("step of SCS", 0, stops[-1]),
            ("off by", 1e-16, 10),
            log="y",
            names={GRAY: "2λ₁ + λ₂, as said", GREEN: "proved bound", ORANGE: "above the optimum"},
        )
        as_said = np.array([abs(float(claimed[k] - Fraction(3, 2))) for k in stops])
        proved = np.array([float(Fraction(3, 2) - bounds[k]) for k in stops])
        errors.line(stops, np.maximum(as_said, 1e-16), GRAY)
        errors.line(stops, np.maximum(proved, 1e-16), GREEN)
        for k, off in zip(stops, as_said, strict=True):
            if claimed[k] > Fraction(3, 2):
                errors.dots(k, max(off, 1e-16), ORANGE)
        errors.dots(steps, max(proved[stops.index(steps)], 1e-16), BLACK, 8, hollow=True)
        return plane, errors

    Moving("Steps of SCS:", stops, 9, _draw)


@app.cell(hide_code=True)
def _(stops, too_high):
    mo.md(f"""
    An orange disk is a number that one might take for a lower bound, and that is **above the
    optimum**: here in {len(too_high)} of {len(stops)} cases. The repaired bound is never above.
    In these cases it is even much closer, since λ is nearly a multiple of the best one.

    ### Any cone program

    For a general cone program *F*<sup>⊤</sup>λ + *c* = 0 is a system of equations that no solver
    meets exactly, and there is no anchor that works for every problem. `certify_problem` does this
    instead:

    1. It corrects λ, so that the equations hold almost exactly, and moves it inward.
    2. It proves that each block of λ lies inside its cone, with a ball around it.
    3. It proves that the equations have an exact solution within these balls. That takes one
       Cholesky factorization of *F*<sup>⊤</sup>*F* in suitable coordinates, verified as in
       section 4.4.
    4. The bound is that of the worst point in the balls, rounded down.

    The exact solution is never computed, but it exists, and that is all weak duality needs. The
    same is done for *x*. If the answer of the solver does not suffice, the problem is solved again.

    ## 10.4 Proved, refuted, not yet

    What does a solver claim? It says "optimal", and returns a value ξ and a point at which the
    constraints hold. By its default tolerance on the gap, "optimal" stands for *i* digits: 8 for
    Clarabel, 5 for SCS, 6 for CVXOPT. Let us take the solver at its word:

    {formulas("CLAIM")}

    and no constraint may be violated by more than 10<sup>−*i*</sup>, in its own units: the worst
    entry of an equation or inequality, minus the least eigenvalue of a matrix that should be PSD,
    the norm minus its bound in a second-order cone. Call the
    larger of the two, relative error and violation, the **error** of the answer. The
    optimum has a proved enclosure, and the point is judged in intervals (`certificate.point`). So
    the error is enclosed as well:

    {formulas("ERROR")}

    - **Proved:** χ₂ is at most 10<sup>−*i*</sup>. The claim follows from the proof.
    - **Refuted:** χ₁ is more than 10<sup>−*i*</sup>. The claim contradicts the proof.
    - **Not yet:** neither. This says something about the proof, and nothing about the solver.

    The verdict is about what the solver claims, and nothing else. SCS claims five digits: if five
    are proved, its claim is proved, although the sixth digit is wrong.

    "Infeasible" and "unbounded" are claims too. A λ in the dual cone with *F*<sup>⊤</sup>λ = 0 and
    ⟨*h*, λ⟩ < 0 proves the first: at a feasible *x* the number ⟨λ, *h* − *Fx*⟩ would be ≥ 0, and it
    is ⟨*h*, λ⟩. A feasible point and a ray, an *x* with −*Fx* in the cone and *c*<sup>⊤</sup>*x* <
    0, prove the second. A proved feasible point refutes the first, a finite lower bound the second.

    ### Your turn

    Choose a problem, change it, or type your own. The code must define `problem`; `cp` and `np` are
    already imported.
    """)


@app.cell(hide_code=True)
def _():
    chosen = mo.ui.dropdown(list(EXAMPLES), value="The smallest trace", label="Problem")
    solver = mo.ui.dropdown(installed(), value="SCS", label="Solver")
    when_live(mo.hstack([chosen, solver], justify="start", wrap=True))
    return chosen, solver


@app.cell(hide_code=True)
def _(chosen):
    # Without `debounce`: with it, marimo can send the text of the last example for this one.
    typed = mo.ui.code_editor(EXAMPLES[chosen.value], label="Your problem")
    when_live(typed)
    return (typed,)


@app.cell(hide_code=True)
def _(solver, typed):
    live_answer(typed.value, solver.value)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 10.5 Digits claimed, digits proved

    Four problems with nothing wrong in them. On the left each solver answers with its default
    tolerances. The upright mark is what "optimal" stands for. Digits that are proved are green,
    those that are open gray, and those that are claimed and refuted orange. On the right SCS and
    Clarabel are asked for 2, 4, 6 and 8 digits. A point below the diagonal claims more than is
    proved.
    """)


@app.cell
def _():
    tolerances = {
        "SCS": lambda eps: {"eps": eps},
        "CLARABEL": lambda eps: dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), eps),
    }
    levels = [2, 4, 6, 8]
    entrants = [(name, {}) for name in installed()]
    entrants += [(name, of(10.0**-i)) for name, of in tolerances.items() for i in levels]
    races = [ask_all(example.code, entrants) for example in WELL_POSED]
    for _example, _answers in zip(WELL_POSED, races, strict=True):
        _lower, _upper = _answers[0].lower, _answers[0].upper
        assert _upper - _lower <= 1e-6 * max(1, abs(_upper))
        assert _example.truth is None or _lower <= _example.truth <= _upper
        assert all(answer.error[0] <= answer.error[1] for answer in _answers)
    return levels, races, tolerances


@app.cell(hide_code=True)
def _(levels, races, tolerances):
    _names = [example.name for example in WELL_POSED]
    _n = len(installed())

    def _draw(name):
        answers = races[_names.index(name)]
        panel = Panel(
            "Asked for more digits",
            ("digits claimed", 0, 9),
            ("digits proved", 0, 13),
            names=dict(zip((ORANGE, BLUE), tolerances, strict=True)),
        )
        panel.line([0, 9], [0, 9], BLACK, width=1)
        for k, color in enumerate((ORANGE, BLUE)):
            rows = answers[_n + 4 * k : _n + 4 * k + 4]
            panel.line(levels, [row.digits[0] for row in rows], color)
            panel.dots(levels, [row.digits[0] for row in rows], color)
        return draw_digits(name, answers[:_n]), panel

    Moving("Problem:", _names, _names[-1], _draw)


@app.cell(hide_code=True)
def _(levels, races, tolerances):
    _asked = [answer for answers in races for answer in answers[-2 * len(levels) :]]
    _levels = [i for _ in races for _ in tolerances for i in levels]
    _widths = [(a[0].upper - a[0].lower) / max(1, abs(a[0].upper)) for a in races]
    _words = [answer.verdict(i) for answer, i in zip(_asked, _levels, strict=True)]
    mo.md(f"""
    Of {len(_words)} claims on the right, {_words.count("proved")} are proved,
    {_words.count("refuted")} are refuted and {_words.count("not yet")} are open. A refuted claim is
    not fraud. A solver tests residuals, in its own scaling and relative to norms of its own choice;
    it cannot know how many digits of the *value* are then right. And the proof has its limits too:
    the largest relative gap of these four enclosures is {max(_widths):.0e}.

    ## 10.6 A gallery of failures

    Now problems in which something **is** wrong. Each is convex, passes CVXPY's rules, and fits in
    five lines. Each verdict is on the solver's own claim, as in 10.4.
    """)


@app.cell
def _():
    gallery = [ask_all(example.code, [(name, {}) for name in installed()]) for example in GALLERY]
    for _example, _answers in zip(GALLERY, gallery, strict=True):
        assert _answers[0].lower <= _example.truth <= _answers[0].upper  # on paper we know it
    settled = {answers[0].infeasible or answers[0].unbounded for answers in gallery[:5]}
    assert settled == {False}
    assert [answers[0].infeasible for answers in gallery[5:7]] == [True, False]  # weakly: no ray
    assert [answers[0].unbounded for answers in gallery[7:]] == [True, False]  # slowly: none
    return (gallery,)


@app.cell(hide_code=True)
def _(gallery):
    def _card(number, example, answers):
        said = "\n".join(f"- {answer.solver}: {_said(answer)}" for answer in answers)
        return (
            f"### {number} {example.name}\n\n{example.why}\n\n```python\n{example.code}\n```\n\n"
            f"{said}\n- **Proved:** {what_is_proved(answers[0])}.\n"
        )

    def _said(answer):
        status = answer.status.replace("_", " ")
        value = f", {answer.value:.6g}" if answer.claims_a_value else ""
        return f"{status}{value}: **{answer.own_verdict}**"

    mo.md(
        "\n".join(
            _card(k, example, answers)
            for k, (example, answers) in enumerate(zip(GALLERY, gallery, strict=True), start=1)
        )
    )


@app.cell
def _():
    names = {"cp": cp, "np": np}
    exec(EXAMPLES["Positive gap"], names)
    relaxed = certify_problem(names["problem"], tolerance=1e-4)
    assert relaxed.upper < 0.5  # and not near 1, the optimal value without the tolerance
    return (relaxed,)


@app.cell(hide_code=True)
def _(relaxed):
    _upper = f"{relaxed.upper:.2g}".replace("-", "−")
    mo.md(f"""
    What most of the failures have in common: an arbitrarily small change of the data changes the
    answer by much more, or from finite to infinite. (The others: 5 has a tolerance in the wrong
    scale, 6 a margin near the tolerances, and 8 is there for contrast with 9.) Take the positive
    gap. Without any tolerance the optimal
    value is 1. Certify instead the problem in which each constraint may be off by 10⁻⁴,
    with `certify_problem(problem, tolerance=1e-4)`, and the optimal value is at most
    **{_upper}**. Both are theorems, about two problems; a solver with tolerances cannot know which
    of them you meant.

    ## 10.7 What is proved, and about what

    - The theorem is about CVXPY's conic program, **with its doubles as they are**. It does not
      cover that 0.1 is not a double, or that CVXPY has already added two constants.
    - The lower and the upper bound hold for the optimal value, not for the solver's point. The
      point has a report of its own: an interval for each violation.
    - "Not yet" may mean: no interior, of the feasible points or of the multipliers; a positive gap;
      an optimum that is not attained, so that feasible points near it run away and the upper bound
      stays a little above it; weak infeasibility; numbers of very different size.
    - What cannot be certified is refused by name: integer variables, problems that are not DCP,
      atoms that CVXPY approximates.
    - `certificate.to_json()` writes the proof to a file, and `seraph-cvx check proof.json` checks
      it again with code of its own.
    """)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## Questions

    /// details | 1. A dual point is refuted by a *v*. Does that refute the bound it claimed?
    No. The number 2λ₁ + λ₂ may still be below the optimum, and another point may prove it. What
    is refuted is this proof. A bound is refuted by a feasible *x* with a smaller value.
    ///

    /// details | 2. Why can a weakly infeasible problem have a lower bound of a billion?
    Because every number is a lower bound on the optimum of an infeasible problem, which is ∞. Each
    dual point proves some number, and they prove larger and larger ones; but no single multiplier
    proves ∞ without a ray, and this problem has none.
    ///

    /// details | 3. The interval is [0, 1], and SCS says 0.3. Proved, refuted or not yet?
    Not yet, for more than zero digits: all of [0, 1] is possible, so the error may be anything
    from 0 to 0.7. If you *know* that the dual has the value 0 and the primal 1, no
    multipliers will ever decide it, and you have to change the problem.
    ///

    ## Exercise

    [Problem set 10](../exercises/set_10_certificates.py): by hand, multipliers that prove bounds on
    a linear and a semidefinite program in exact fractions; in CVXPY, a problem of your own,
    certified to 10⁻⁶; and you break something: an answer that looks better than the best one, until
    you read its certificate. `seraph-cvx check-exercise set10 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

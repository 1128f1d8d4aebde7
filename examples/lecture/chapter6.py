"""6 EM, and learning from unlabeled points"""

import marimo

app = marimo.App(app_title="6 EM, and learning from unlabeled points")

with app.setup:
    import marimo as mo
    import numpy as np
    from drawing import BLUE, GRAY, ORANGE, Moving, Panel
    from lecture import formulas
    from sklearn.datasets import load_wine
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import StandardScaler

    from seraph_cvx import SERAPH, MStepObjective, PairSet, alternate, certify
    from seraph_cvx.datasets import load_sampling
    from seraph_cvx.model.posterior import EntropyLoss, SharpenedLoss


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 6 EM, and learning from unlabeled points

    **Goal.** You can say which function the alternation of E-step and M-step descends, that it
    is not the paper's objective, and how much the unlabeled points are worth on real data.

    **Time.** 25 minutes. **You need** the M-step of chapter 2, the certificate of chapter 4, and
    Newton on a face from chapter 5. EM is short for "expectation and maximization", the two steps
    below.

    **In Boyd and Vandenberghe's book:** 7.1.1 (maximum likelihood); EM is not in the book.

    ## 6.1 Two convex halves of a problem that is not convex

    The paper wants the metric to be *sure* of the unlabeled pairs: *p* shall have low entropy. That
    makes (7) nonconvex. So the paper alternates between two steps: soft labels *q* from the metric
    (E-step), and a metric from the soft labels (M-step). Each step is a convex problem.

    {formulas("OBJECTIVE", "E_STEP", "M_STEP")}
    """)


@app.cell
def _():
    # Wine, standardized, with four points of each class labeled.
    X, classes = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    rng = np.random.default_rng(0)
    y = np.full(len(classes), -1)
    for _label in range(3):
        y[rng.choice(np.flatnonzero(classes == _label), 4, replace=False)] = _label
    pairs = PairSet.from_labels(X, y)
    return (pairs,)


@app.cell
def _(pairs):
    # The paper's setting and its pace: μ = #(𝒮 ∪ 𝒟)/#𝒰, λ = 1, a = 1 + μ.
    run = alternate(pairs, accelerate=False)
    J = np.array([step.descent_value for step in run.history])
    seven = np.array([step.paper_objective for step in run.history])
    assert np.all(np.diff(J) < 1e-9)
    assert seven[-1] > seven[0]
    return J, run, seven


@app.cell(hide_code=True)
def _(J, seven):
    _t = np.arange(1, len(J) + 1)

    def _draw(t):
        k = int(t) - 1
        panels = []
        for name, values, color in (("J", J, BLUE), ("(7), as a minimization", seven, ORANGE)):
            panel = Panel(
                f"Iteration {t}: {name} is {values[k]:.3f}",
                ("iteration", 1, len(J)),
                (name, min(values), max(values)),
                log="x" if len(J) > 20 else "",
            )
            panel.line(_t, values, GRAY, width=1)
            panel.line(_t[: k + 1], values[: k + 1], color)
            panel.dots(t, values[k], color, 7)
            panels.append(panel)
        return panels

    _some = [k for k in (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120) if k < len(J)]
    Moving("Iteration:", [*_some, len(J)], 5, _draw)


@app.cell(hide_code=True)
def _(J, seven):
    mo.md(f"""
    Both are drawn as minimizations. *J* falls at every iteration, from {J[0]:.2f} to
    {J[-1]:.2f}. The paper's objective (7) **rises**, from {seven[0]:.2f} to {seven[-1]:.2f}. So
    what is *J*?

    ## 6.2 What the alternation descends

    Look for one function of *q* and *A* of which the E-step is the best *q* and the M-step the best
    *A*. As a function of *A* it must be the objective of the M-step: an unlabeled pair costs μ
    times its expected surprise under *q*. We may still add a term that depends on *q* alone. Take
    −μ*H*(*q*)/*a*:

    {formulas("DESCENT")}

    Which *q* minimizes it? Substitute *q*(+1) = 1 − *q*(−1) and set the derivative to zero:
    *q*(*y*) is proportional to *p*(*y*)<sup>*a*</sup>, and with *a* = 1 + μ that is the E-step
    (exercise 6 has the details).

    {formulas("LEAST_OVER_SOFT_LABELS")}
    """)


@app.cell(hide_code=True)
def _(pairs):
    _mu = pairs.resolve_unlabeled_weight("ratio")
    _weight = _mu**2 / (1 + _mu)
    mo.md(f"""
    Each of the two steps minimizes *J* over one of its variables, so *J* never rises. The last line
    is what matters: at the best *q* an unlabeled pair costs its Rényi entropy *H*<sub>*a*</sub>,
    times μ(*a* − 1)/*a*. The paper's E-step has *a* = 1 + μ, so the weight of the entropy is
    μ²/(1 + μ) in *J*, but μ in (7). On this data μ = {_mu:.4f}, and {_weight:.1e} is
    **{_mu / _weight:.0f} times smaller**: run to convergence, the paper's EM nearly ignores the
    unlabeled pairs.

    With *a* = 2 and the weight 2μ, the weight in *J* is μ again (of a Rényi entropy of order 2
    instead of Shannon's). The defaults of `SERAPH()` use that.

    ## 6.3 One function, three losses

    Put the best *q* into *J*. Then the M-step (for a fixed *q*), *J* and (7) are all functions of
    *A* alone, and of the same form. They differ in **one scalar function** of the score of an
    unlabeled pair, and in the linear part *K*:

    {formulas("ONE_FUNCTION", "THREE_LOSSES", "LINEAR_PARTS")}
    """)


@app.cell(hide_code=True)
def _():
    _s = np.linspace(-6, 6, 97)

    def _draw(a):
        losses = Panel(
            f"Loss of an unlabeled pair, a = {a:g}",
            ("score s", -6, 6),
            ("φ₂(s)", 0, 2),
            names={GRAY: "M-step, convex", BLUE: "J", ORANGE: "(7)"},
        )
        losses.line(_s, np.logaddexp(0, _s), GRAY)
        losses.line(_s, SharpenedLoss(a).value(_s), BLUE)
        losses.line(_s, EntropyLoss().value(_s), ORANGE)
        labels = Panel(
            "The soft label against the posterior",
            ("p(−1)", 0, 1),
            ("q(−1)", 0, 1),
            names={GRAY: "q = p", BLUE: "E-step"},
        )
        labels.line([0, 1], [0, 1], GRAY, width=1)
        labels.line(1 / (1 + np.exp(-_s)), 1 / (1 + np.exp(-a * _s)), BLUE)
        return losses, labels

    Moving("Sharpness a:", [1.01, 1.1, 1.25, 1.5, 2, 3, 5, 10, 30], 2, _draw)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    For *a* > 1, the losses in *J* and (7) have a hill at *s* = 0, where a pair is undecided: a
    metric is pushed away from it, to either side. This is what unlabeled pairs contribute, and also
    why neither function is convex. As *a* → 1 the hill becomes flat; as *a* → ∞ the loss becomes
    φ₁(−|*s*|), with hard labels. One method, Newton on a face (chapter 5), serves all three.

    ## 6.4 What the certificate still says

    *J* is not convex, so the certificate of chapter 4 does not apply to it. But:

    {formulas("ENVELOPE")}

    The reason: at the best *q* the derivative of *J* with respect to *q* is zero, so its gradient
    in *A* is the same as with *q* held fixed, and that is the gradient of the M-step.
    """)


@app.cell
def _(pairs, run):
    # Newton's method on J itself, after a first M-step.
    fast = alternate(pairs)
    own = MStepObjective(pairs, previous_metric=fast.metric)  # its own soft labels
    proof = certify(own, fast.metric)
    mo.md(f"""
    A stationary point of *J* therefore solves the **convex** M-step with its own soft labels, and
    this M-step can be certified. Here the alternation took {len(run.history)} iterations, Newton's
    method on *J* {len(fast.history)} steps. They end at *J* = {run.history[-1].descent_value:.6f}
    and {fast.history[-1].descent_value:.6f}; the M-step of the second run is solved to a proved
    relative gap of {proof.relative_gap:.0e}. A small gap means "nearly a fixed point of the
    alternation", not "the smallest *J*".
    """)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 6.5 At work

    The table has the error of the nearest labeled point on flowers and wines that no fit has seen,
    under three distances: Euclidean; learned from the labeled points alone (μ = 0); learned from
    the unlabeled points as well, by the defaults of `SERAPH()`. There are eight draws of the labels
    for each.
    """)


@app.cell
def _():
    def errors(name, n_labeled, seed):
        """The 1-NN error on test points under three distances, in percent."""
        drawn = load_sampling(name, n_points=80, n_labeled=n_labeled, seed=seed)
        known = drawn.labeled
        found = []
        for model in (None, SERAPH(unlabeled_weight=0.0), SERAPH()):
            if model is not None:
                model.fit(drawn.X, drawn.y)
            move = (lambda points: points) if model is None else model.transform
            nearest = KNeighborsClassifier(1).fit(move(drawn.X[known]), drawn.y[known])
            found.append(100 * np.mean(nearest.predict(move(drawn.X_test)) != drawn.y_test))
        return found

    table = {
        (name, n): np.array([errors(name, n, seed) for seed in range(8)])
        for name in ("iris", "wine")
        for n in (6, 30)
    }
    return (table,)


@app.cell(hide_code=True)
def _(table):
    _gain = np.concatenate([drawn[:, 1] - drawn[:, 2] for drawn in table.values()])
    _error = _gain.std(ddof=1) / np.sqrt(len(_gain))
    _rows = [
        f"| {name} | {n} | {' | '.join(f'{mean:.1f}' for mean in drawn.mean(axis=0))} |"
        for (name, n), drawn in table.items()
    ]
    _head = "| mean error in % | labels | Euclidean | labels alone | all points |"
    _table = "\n    ".join([_head, "| --- | --- | --- | --- | --- |", *_rows])
    mo.md(f"""
    {_table}

    Of {len(_gain)} draws, the unlabeled
    points help in {np.sum(_gain > 0)} and hurt in {np.sum(_gain < 0)}; on average they take
    {_gain.mean():.2f} percentage points off the error (standard error {_error:.2f}).
    Judge a method by many draws, never by one draw.

    ## Questions

    /// details | 1. EM is said never to make its objective worse. Why may (7) rise?
    Because (7) is not the objective of this EM. At the best *q* an unlabeled pair adds μ(*a* −
    1)/*a* times its Rényi entropy to *J*, and μ times its Shannon entropy to (7). The first is
    smaller, so a falling *J* says nothing about (7).
    ///

    /// details | 2. What becomes of *J* at *a* = 1?
    The soft label is the posterior, *q* = *p*, and the surprise that *p* expects at *p* **is** its
    entropy: the unlabeled pairs drop out of *J*. The alternation still moves, but only toward the
    solution for the labeled pairs alone.
    ///

    /// details | 3. A fit is certified with a gap of 10⁻⁹. Is it the best metric?
    It solves, to 10⁻⁹, the M-step with its own soft labels: a fixed point. Another start may
    end at another fixed point with a smaller *J*; and the smallest *J* need not have the
    smallest error.
    ///

    ## Exercise

    [Problem set 6](../exercises/set_6_em.py): three problems, one by hand, one in CVXPY and one in
    which you break something. `seraph-cvx check-exercise set6 FILE` says what is wrong.

    **Longer.** [Exercise 7](../exercises/exercise_7_descent.py), after [exercise
    6](../exercises/exercise_6_e_step.py): write (7) and *J*, and watch one rise while the other
    falls. *Hint:* what should *J* be at soft labels that are all 0 or 1? Test that before you run
    the alternation. `seraph-cvx check-exercise 7 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

"""2 From a metric to a likelihood"""

import marimo

app = marimo.App(app_title="2 From a metric to a likelihood")

with app.setup:
    import re
    from html import escape

    import cvxpy as cp
    import marimo as mo
    import numpy as np
    from drawing import AMBER, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import formulas, some_irises

    from seraph_cvx import MStepObjective, PairSet, explain_convexity, paper, state_m_step
    from seraph_cvx.model.m_step_objective import SemiSupervisedObjective


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 2 From a metric to a likelihood

    **Goal.** You can write down the M-step (11), give for each of its terms the rule by which it is
    convex, and show by two points that the paper's objective (7) is not.

    **Time.** 25 minutes. **You need** chapter 1. Numbers in parentheses are equations of Niu, Dai,
    Yamada and Sugiyama (ICML 2012).

    **In Boyd and Vandenberghe's book:** 3.1 and 3.2 (convex functions), 7.1.1 (maximum likelihood).

    ## 2.1 A distance becomes a probability

    For a few pairs of points we are told whether they are **similar** (*y* = +1, the set 𝒮) or
    **dissimilar** (*y* = −1, the set 𝒟). Near points should be similar. So we let the probability
    of *y* = +1 fall with the squared distance, by the logistic function:

    {formulas("PROBABILITY")}

    The threshold η is the squared distance at which both labels are equally likely. For pair *k*
    let *v*ₖ be the difference of its points and *s*ₖ = *v*ₖ<sup>⊤</sup>*Av*ₖ − η its **score**:
    negative for near, positive for far.

    In the whole course, *p* without a label in parentheses is the probability of "dissimilar": *p*
    = *p*(−1) = σ(*s*), with the logistic function σ, and *p*(+1) = 1 − *p*.

    Below are 50 irises, three of each kind with a label: 9 similar and 27 dissimilar pairs. The
    metric is *A* = θ*I*; only its multiple θ is free. Too small, and all pairs look similar; too
    large, and most of the similar ones look dissimilar as well.
    """)


@app.cell
def _():
    X, y = some_irises()
    pairs = PairSet.from_labels(X, y)
    return X, pairs


@app.cell(hide_code=True)
def _(X, pairs):
    _labeled = MStepObjective(pairs, unlabeled_weight=0.0, trace_weight=0.0)
    _scales = np.linspace(0, 2, 81)
    _values = [_labeled.value(_theta * np.eye(4)) for _theta in _scales]

    def _draw(theta):
        curve = Panel(
            "Each labeled pair on the curve of (8)",
            ("score s", -1.5, 6),
            ("p(−1), dissimilar", 0, 1.05),
            names={ORANGE: "told dissimilar", BLUE: "told similar"},
        )
        s = np.linspace(-1.5, 6, 61)
        curve.line(s, paper.posterior(s, -1.0, 0.0), GRAY)
        for rows, color in ((pairs.dissimilar, ORANGE), (pairs.similar, BLUE)):
            d = paper.squared_distances(X, rows, theta * np.eye(4))
            curve.dots(d - 1, paper.posterior(d, -1.0, 1.0), color)
        loss = Panel(
            "The surprise at all labels",
            ("multiple θ", 0, 2),
            ("sum of −ln p(y)", 0, 1.05 * max(_values)),
        )
        loss.line(_scales, _values, BLUE)
        loss.dots(theta, _labeled.value(theta * np.eye(4)), GREEN, 7)
        return curve, loss

    Moving(
        "Multiple θ of the identity:",
        [0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0],
        0.2,
        _draw,
    )


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## 2.2 Maximum likelihood is least surprise

    The likelihood of the labels is the product of their probabilities, if we treat pairs as
    independent, as the paper does. Its negative logarithm is a sum of **surprises**, one for each
    labeled pair, which we want to be small:

    {formulas("SURPRISE")}

    ## 2.3 The unlabeled pairs, and a penalty

    About most pairs, the set 𝒰, we are told nothing. Suppose for now that someone guesses: a **soft
    label** *q*(+1) + *q*(−1) = 1 for each. It enters as a label would, weighted by *q* and by a
    weight μ ≥ 0. A penalty λ tr(*A*) keeps the metric small and, as section 3.7 will show, its rank
    low. In our pictures the guess is the paper's first one, *q*(−1) = 1. That is the **M-step**:

    {formulas("M_STEP")}

    **One sign.** From here on we minimize *f* = −ℱ, the same problem with the sign changed.

    ### One logistic term per pair

    A label *y* = −1 costs the same logistic term as *y* = +1, less
    the score, which is affine in *A*. All that is linear goes into one matrix *G*:

    {formulas("LOGISTIC_IDENTITY", "M_STEP_ONE_TERM")}

    *c*ₖ is the weight of a pair: 1 if it is labeled, or how sure we are of its label, and μ if it
    has none. *b*ₖ is the weight of its label −1: 0 if it is similar, *c*ₖ if dissimilar, μ*q*(−1)
    if unlabeled. Pairs of weight 0 are left out. In *R* the second term, with ν ≥ 0,
    is an option that we leave out: *R* = λ*I*.

    ## 2.4 Why every term is convex

    A function is convex if it nowhere rises above its chord:

    {formulas("CONVEX_FUNCTION", "LOGISTIC_CURVATURE")}

    Five rules do it, and none of them needs a Hessian of *f*.

    | rule | where it is used |
    | --- | --- |
    | 1. An affine function is convex, and so is its negative. | −⟨*G*, *A*⟩, λ tr(*A*), *s*ₖ |
    | 2. A second derivative ≥ 0 means convex. | the logistic term, as a function of *s* |
    | 3. Convex **of affine** is convex. | the logistic term of *s*ₖ, as a function of *A* |
    | 4. A sum with weights ≥ 0 keeps convexity. | the sum over all pairs, since *c*ₖ ≥ 0 |
    | 5. A problem is convex if its objective and its feasible set are. | *A* ⪰ 0, chapter 1 |

    In rule 3 it matters that *s*ₖ is affine **in *A***. It is a quadratic function of *v*ₖ, but
    *v*ₖ is data.

    ### The rules, applied by a machine

    Disciplined convex programming (DCP) is these rules as an algorithm: CVXPY looks at the tree of
    an expression and gives each node a curvature. Read it from the leaves upward.
    """)


@app.cell
def _(pairs):
    objective = MStepObjective(pairs, trace_weight=1.0)
    proof = explain_convexity(state_m_step(objective))
    assert proof.holds
    return objective, proof


@app.cell(hide_code=True)
def _(proof):
    _signs = {"sum_SD": "Σ 𝒮∪𝒟", "sum_D": "Σ 𝒟", "sum_U": "Σ 𝒰", "lambda": "λ", "eta": "η"}
    _signs |= {"beta": "β", "mu": "μ", "log": "ln", "<": "⟨", ">": "⟩", "e^s": "eˢ"}

    def _outline(node, depth=0):
        words = r"e\^s|[a-z]\w*|[<>]"
        name = re.sub(words, lambda word: _signs.get(word[0], word[0]), node.expression)
        name = re.sub(r"\d\.\d{5,}", lambda number: f"{float(number[0]):.3g}", name)
        words = f"<b>{node.curvature.lower()}</b> {escape(name)}: {escape(node.rule)}"
        yield f'<div style="margin:.25rem 0 .25rem {0.9 * depth}rem">{words}</div>'
        if depth < 3:
            for child in node.children:
                yield from _outline(child, depth + 1)

    mo.Html(f'<div style="font-size:.9rem">{"".join(_outline(proof))}</div>')


@app.cell(hide_code=True)
def _():
    mo.md("""
    DCP judges how a function is **written**. The same function, written differently, may be beyond
    its rules, and "no rule applies" never means "not convex":
    """)


@app.cell
def _():
    s = cp.Variable()
    assert cp.logistic(s).is_convex()
    assert not cp.log(1 + cp.exp(s)).is_dcp()  # a concave function of a convex one: no rule


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## 2.5 Why (7) is not convex

    In fact soft labels are not given. The paper's objective replaces them by the posterior itself,
    so that each unlabeled pair costs its **entropy**: the metric should be sure of its label,
    either way.

    {formulas("OBJECTIVE", "ENTROPY_CURVATURE")}

    The entropy *H*(σ(*s*)) is small for near pairs, small for far ones, and largest in between. At
    *s* = 0 its curvature is −¼: there it bulges above its chords.
    """)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ### Two metrics are a proof

    One bulging term does not settle it: other terms might make up for it. A proof that (7) is not
    convex needs two metrics and the chord between them. Here *A* = 0, which sees nothing and takes
    all pairs for similar, and *B* = 0.3*I*, which takes most for dissimilar. Raise the weight μ of
    the unlabeled pairs. (Where μ is so small that this segment shows nothing, another one would:
    question 3.)
    """)


@app.cell
def _():
    def along_segment(f, t):
        """f at t * 0.3 I, how far it is above its chord relative to its size, and the chord."""
        values = np.array([f.value(0.3 * step * np.eye(4)) for step in t])
        chord = (1.0 - t) * values[0] + t * values[-1]
        return values, np.max(values - chord) / np.max(np.abs(values)), chord

    return (along_segment,)


@app.cell(hide_code=True)
def _(along_segment, pairs):
    def _draw(mu):
        tried, t, panels = MStepObjective(pairs, unlabeled_weight=mu), np.linspace(0, 1, 41), []
        for f, name, color in (
            (tried, "(11)", BLUE),
            (SemiSupervisedObjective(tried), "(7), sign changed", ORANGE),
        ):
            values, excess, chord = along_segment(f, t)
            word = f"{excess:.1%} above" if excess > 1e-9 else "below"
            low, high = np.min([values, chord]), np.max([values, chord])
            panel = Panel(
                f"{name}: {word} its chord",
                ("θ, from A to B", 0, 1),
                ("value", low - 0.05 * (high - low), high + 0.05 * (high - low)),
                names={color: "value", GRAY: "chord"},
            )
            panel.area(t, chord, np.maximum(values, chord), AMBER, 0.5)
            panel.line(t, values, color)
            panel.line(t, chord, GRAY, "6 4")
            panels.append(panel)
        return panels

    Moving("Weight μ of the unlabeled pairs:", [0.0, 0.01, 0.03, 0.1, 0.3, 1.0], 0.3, _draw)


@app.cell
def _(along_segment, pairs):
    heavy = MStepObjective(pairs, unlabeled_weight=1.0)
    t = np.linspace(0.0, 1.0, 101)
    # two points are a proof: (7) is not convex
    assert along_segment(SemiSupervisedObjective(heavy), t)[1] > 0.1
    assert along_segment(heavy, t)[1] < 1e-12  # one segment proves nothing; the rules do


@app.cell(hide_code=True)
def _():
    mo.md("""
    What it means in practice: a descent on (7) ends where its start leads it, and nothing it sees
    there tells how far that is from the best. A local minimum of the M-step is a global one: were
    another metric better, the chord to it would lead downward at once. Chapter 3 derives what one
    needs to prove that it has been reached.

    ## Questions

    /// details | 1. Why is *f* convex in *A*, although *v*ₖ enters quadratically?
    Convexity is a statement about one variable, here *A*. For fixed *v*ₖ the score *s*ₖ =
    ⟨*v*ₖ*v*ₖ<sup>⊤</sup>, *A*⟩ − η is affine in *A*. Were we to optimize over a factor *L* with *A*
    = *LL*<sup>⊤</sup>, the score would be quadratic, and minus the score, which dissimilar pairs
    bring, concave: *f* is not convex in *L*.
    ///

    /// details | 2. Would *f* stay convex if a pair had a negative weight *c*ₖ?
    Rule 4 would fail: a negative multiple of a convex term is concave. It might still be convex by
    luck, but no rule would say so. That is why confidences and μ must not be negative.
    ///

    /// details | 3. Far from *s* = 0 the entropy curves upward. Why does that not help?
    Because convexity has to hold everywhere. Take an unlabeled pair whose *v* is not parallel to
    that of another pair, and a metric under which its score is 0, but that is huge in all
    directions at right angles to *v*. Then all other scores are huge, where every term is nearly
    straight, and only this pair is left to curve, downward. So with two features or more (7) is
    not convex for any μ > 0, however small.
    ///

    ## Exercise

    [Problem set 2](../exercises/set_2_likelihood.py): three problems, one by hand, one in CVXPY and
    one in which you break something. `seraph-cvx check-exercise set2 FILE` says what is wrong.

    **Longer.** [Exercise 1](../exercises/exercise_1_convexity.py): write the M-step so that CVXPY
    sees its convexity, then find two metrics between which (7) rises above its chord. *Hint:* think
    of which scores make the entropy large, and choose ends on either side of them. `seraph-cvx
    check-exercise 1 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

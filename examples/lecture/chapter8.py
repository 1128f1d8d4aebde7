"""8 Cones, and what a solver is given"""

import marimo

app = marimo.App(app_title="8 Cones, and what a solver is given")

with app.setup:
    from collections import Counter

    import cvxpy as cp
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import ceiling, enclosure, floor, formulas, some_irises

    from seraph_cvx import (
        MStepObjective,
        PairSet,
        certify,
        certify_problem,
        solve_m_step,
        state_m_step,
    )
    from seraph_cvx.numerics.psd_cone import project


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 8 Cones, and what a solver is given

    **Goal.** You can write the M-step (11) as a conic program by hand, predict how many variables
    and rows CVXPY hands to a solver, and say what "optimal" means there and what it does not.

    **Time.** Two lessons of 25 minutes: 8.1 and 8.2, and the rest. **You need** chapters 2, 3 and
    7; from chapter 1 the cone of metrics.

    **In Boyd and Vandenberghe's book:** 2.2.3 and 2.4 (cones), 2.6.1 (dual cones), 3.2.6
    (perspective), 4.6 (conic form).

    A conic solver knows nothing of metrics or logarithms. It takes one kind of problem (some take a
    quadratic objective, too):

    {formulas("CONIC_PROGRAM")}

    The letters are those of chapter 7: λ is a multiplier, not the trace weight. Everything that is
    not linear must be in the cone 𝒦. Three kinds of cones are enough for (11): nonnegative numbers,
    PSD matrices, and the exponential cone of section 8.2.

    ## 8.1 Cones and their duals

    {formulas("CONVEX_CONE", "DUAL_CONE_IN_COORDINATES")}

    (In this section and the next, *x* is a point of the space in which the cone lies.) The
    multiplier of a constraint *h* − *Fx* ∈ 𝒦 lies in the dual cone: then λ<sup>⊤</sup>(*h* − *Fx*)
    is never negative where the constraint holds (chapter 7). So to use a cone one must know its
    dual. The dual is always a convex cone, since each point *x* of 𝒦 contributes a half-space.

    - **Zero**, for equations: the cone is the point 0 alone. Its dual is everything.
    - **Nonnegative numbers**, for inequalities: *x* ≥ 0 in each entry. Its own dual: sums of
      products of nonnegative numbers are ≥ 0; and if λᵢ < 0, the *i*-th unit vector proves that λ
      is not in the dual.
    - **PSD matrices**: their own dual, by question 2 of chapter 1.
    - **Products.** If 𝒦 is made of blocks, its dual is made of the blocks' duals. Set all blocks of
      *x* but one to 0: each block of λ must pass its own test. If all pass, the sum is ≥ 0.

    ### The second-order cone

    {formulas("SECOND_ORDER_CONE", "SELF_DUAL")}

    It is its own dual, in two steps.

    1. *Each point of 𝒬 is in the dual.* That is the line above; its first inequality is
       Cauchy and Schwarz, the second multiplies two inequalities between numbers ≥ 0.
    2. *Each (χ, λ) in the dual is a point of 𝒬.* Test it on (‖λ‖, −λ), which is in 𝒬: the inner
       product is χ‖λ‖ − ‖λ‖² ≥ 0, so χ ≥ ‖λ‖ unless λ = 0. If λ = 0, test it on (1, 0): χ ≥ 0.

    ### Metrics of two features are a second-order cone

    {formulas("TWO_BY_TWO")}

    1. *Change variables.* Let ξ be half the trace of *A*, and *x* = (*A*₁₁ − ξ, *A*₁₂). Then *A* =
       ξ*I* + *B*, where *B* has the diagonal *x*₁, −*x*₁ and *x*₂ beside it.
    2. *Square B.* The product *BB* has *x*₁² + *x*₂² = ‖*x*‖² on its diagonal and *x*₁*x*₂ −
       *x*₂*x*₁ = 0 beside it. So the square of each eigenvalue of *B* is ‖*x*‖².
    3. *Sum.* The trace of *B* is 0, so its eigenvalues are −‖*x*‖ and ‖*x*‖. Those of *A* are
       larger by ξ. The least one is ≥ 0 exactly if ‖*x*‖ ≤ ξ.

    Even the inner products agree, up to a factor of 2:

    {formulas("TWO_PRODUCTS")}
    """)


@app.cell
def _():
    def as_second_order(A):
        """The number and the vector that belong to a symmetric 2 x 2 matrix."""
        return np.trace(A) / 2, np.array([(A[0, 0] - A[1, 1]) / 2, A[0, 1]])

    _rng = np.random.default_rng(0)
    for _ in range(100):
        _A, _B = (M + M.T for M in _rng.normal(size=(2, 2, 2)))
        (_xi, _x), (_chi, _y) = as_second_order(_A), as_second_order(_B)
        assert np.isclose(np.linalg.eigvalsh(_A)[0], _xi - np.linalg.norm(_x))
        assert np.isclose(np.sum(_A * _B), 2 * (_xi * _chi + _x @ _y))
    return (as_second_order,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    The matrices of trace 2 are the slice ξ = 1 of the cone: a disk. Below, *A* has the diagonal
    1.5, 0.5. Move the entry beside it.
    """)


@app.cell(hide_code=True)
def _(as_second_order):
    def _matrix(beside):
        return np.array([[1.5, beside], [beside, 0.5]])

    def _draw(beside):
        _, x = as_second_order(_matrix(beside))
        least = np.linalg.eigvalsh(_matrix(beside))[0]
        color = GREEN if least >= 0 else ORANGE
        turn = np.linspace(0, 2 * np.pi, 91)
        disk = Panel(
            "The slice ξ = 1: a disk",
            ("(A₁₁ − A₂₂)/2", -1.5, 1.5),
            ("A₁₂", -1.5, 1.5),
            square=True,
        )
        disk.area(np.cos(turn), np.sin(turn), np.sin(turn), GREEN)
        disk.line([0, x[0]], [0, x[1]], GRAY, width=1.5)
        disk.dots(*x, color, 7)
        word = "a metric" if least >= 0 else "not a metric"
        lowest = Panel(
            f"Least eigenvalue {least:.2f}: {word}",
            ("A₁₂", -1.3, 1.3),
            ("eigenvalue", -0.5, 0.6),
            names={BLUE: "computed", BLACK: "1 − ‖x‖"},
        )
        moved = np.linspace(-1.3, 1.3, 53)
        computed = [np.linalg.eigvalsh(_matrix(each))[0] for each in moved]
        lowest.line([-1.3, 1.3], [0, 0], GRAY, width=1)
        lowest.line(moved, computed, BLUE, width=5)
        lowest.line(moved, 1 - np.hypot(0.5, moved), BLACK, "6 4", 1.5)
        lowest.dots(beside, least, color, 7)
        return disk, lowest

    Moving("Entry A₁₂:", [round(-1.2 + k / 5, 1) for k in range(13)], 0.6, _draw)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    So with two features a solver needs no PSD cone: 𝒬 will do. From three features on we use the
    PSD cone itself.

    /// details | Check: by the cone, is the matrix with the diagonal 3, 1 and 2 beside it a metric?
    No: ξ = 2 and *x* = (1, 2), whose length √5 is more than 2. The least eigenvalue is 2 −
    √5.
    ///

    ## 8.2 The exponential cone

    The logistic term needs one cone more. It lives in three dimensions:

    {formulas("EXPONENTIAL_CONE")}

    The second line adds the limits of the first: (*x*₁, δ, *x*₃ + δ) satisfies the first line for
    δ > 0, and goes to (*x*₁, 0, *x*₃). It makes the cone closed. **Why is it a convex cone?**

    {formulas("HALF_SPACES")}

    1. *The maximum.* The exponential function is convex, so it lies above its tangent at each θ:
       at *x*₁/*x*₂ it is at least *e*<sup>θ</sup>(1 + *x*₁/*x*₂ − θ), with equality if θ is
       *x*₁/*x*₂. Multiply by *x*₂ > 0.
    2. *If x₂ > 0*, the rest follows: above a maximum means above each function.
    3. *If x₂ = 0*, the last line is *x*₃ ≥ *e*<sup>θ</sup>*x*₁ for all θ. Large θ allow no *x*₁ >
       0, and θ → −∞ leaves *x*₃ ≥ 0. If *x*₁ ≤ 0 ≤ *x*₃, all of them hold.
    4. The last line is a half-space for each θ, and there is one more, *x*₂ ≥ 0. Each has 0 on its
       boundary, so it is a closed convex cone, and so is what they have in common.
    """)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    Each slice at a height *x*₂ is *x*₂ times the slice at 1. Near *x*₂ = 0 it becomes a
    quadrant: *x*₁ > 0 costs without bound, *x*₁ ≤ 0 costs nothing.

    ### Its dual cone, derived

    1. *It suffices to look at x₂ = 1.* The other points with *x*₂ > 0 are multiples of these, and
       those with *x*₂ = 0 are limits. So λ is in the dual exactly if λ₁*x*₁ + λ₂ + λ₃*x*₃ ≥ 0
       wherever *x*₃ ≥ *e*<sup>*x*₁</sup>.
    2. *λ₃ ≥ 0*, because *x*₃ may be as large as you like. Then the smallest *x*₃ is the hardest
       test, and one number is left: λ₁*x*₁ + λ₂ + λ₃*e*<sup>*x*₁</sup> ≥ 0 for all *x*₁.
    3. *λ₁ > 0* fails as *x*₁ → −∞. *λ₁ = 0* leaves λ₂ + λ₃*e*<sup>*x*₁</sup>, whose infimum is λ₂:
       so λ₂ ≥ 0. *λ₁ < 0 and λ₃ = 0* fails as *x*₁ → ∞.
    4. *λ₁ < 0 < λ₃:* a convex function of *x*₁. It is least where its slope, λ₁ +
       λ₃*e*<sup>*x*₁</sup>, is zero. Put in *e*<sup>*x*₁</sup> = −λ₁/λ₃:

    {formulas("LEAST_PRODUCT")}

    It is ≥ 0 if and only if the logarithm is at most 1 − λ₂/λ₁ (divide by λ₁ < 0, which reverses
    the inequality). Take exponentials, and multiply by λ₃ and by *e*<sup>λ₂/λ₁</sup>:

    {formulas("EXPONENTIAL_DUAL", "DUAL_AS_IMAGE")}

    The last line only renames: put these three numbers into the definition of ℰ. The exponential
    cone is **not** its own dual: (0, 1, 0) is in the dual, but ℰ has no point with *x*₁ = 0, *x*₂ =
    1 and *x*₃ < 1.
    """)


@app.cell
def _():
    def in_exponential_cone(x):
        if x[1] > 0:
            return x[2] > 0 and x[1] * np.log(x[2] / x[1]) >= x[0]
        return x[1] == 0 and x[0] <= 0 <= x[2]

    def in_its_dual(y):
        return in_exponential_cone((y[0] - y[1], -y[0], y[2]))

    assert in_its_dual((0, 1, 0))
    assert not in_exponential_cone((0, 1, 0))
    _sample = np.random.default_rng(1).normal(size=(2000, 3))
    _inside = np.array([_x for _x in _sample if in_exponential_cone(_x)])
    _dual = np.array([_y for _y in _sample if in_its_dual(_y)])
    assert min(len(_inside), len(_dual)) > 100
    assert np.min(_inside @ _dual.T) >= 0


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ### The logistic term, as a solver sees it

    Give the term a bound ξ of its own, and two helpers χ₁ and χ₂:

    {formulas("LOGISTIC_CONES")}

    In both triples the middle entry is 1, so they say *e*<sup>−ξ</sup> ≤ χ₁ and
    *e*<sup>*s*−ξ</sup> ≤ χ₂. What both directions use is

    {formulas("BOTH_DIRECTIONS")}

    1. *From left to right.* Choose χ₁ = *e*<sup>−ξ</sup> and χ₂ = *e*<sup>*s*−ξ</sup>. Both triples
       are in ℰ, and 1 + *e*<sup>*s*</sup> ≤ *e*<sup>ξ</sup> makes the sum at most 1.
    2. *From right to left.* Add the two inequalities: the left side above is at most χ₁ + χ₂ ≤ 1.
       Multiply by *e*<sup>ξ</sup> > 0: 1 + *e*<sup>*s*</sup> ≤ *e*<sup>ξ</sup>. Take logarithms.

    **One logistic term takes** 3 variables (ξ, χ₁, χ₂), 2 exponential cones of 3 rows each, and 1
    inequality: 7 rows. If ξ is minimized, it equals the logistic term. CVXPY states `cp.logistic`
    in just this way:
    """)


@app.cell
def _():
    _s = cp.Variable()
    one_term = cp.Problem(cp.Minimize(cp.logistic(_s)), [_s == 0.7])
    _data, *_ = one_term.get_problem_data("SCS")
    assert _data["A"].shape == (7 + 1, 3 + 1)  # one more variable and one more row: s = 0.7
    assert (_data["dims"].exp, _data["dims"].nonneg, _data["dims"].zero) == (2, 1, 1)
    proved = certify_problem(one_term)
    assert proved.lower <= np.logaddexp(0, 0.7) <= proved.upper
    assert proved.relative_gap < 1e-6
    return (proved,)


@app.cell(hide_code=True)
def _(proved):
    mo.md(f"""
    At *s* = 0.7 the conic program has its optimum in
    **{enclosure(proved.lower, proved.upper, 10)}**, which is proved; the term is
    **{np.logaddexp(0, 0.7):.10f}**.

    /// details | Check: is (−1, 0, 1) in the dual of ℰ? Is (−1, −2, 1)? Which of them is in ℰ?
    The first is in both: 1 ≤ *e* in the dual, and ℰ has it by its second line. The second is in
    neither: *e*² > *e* in the dual, and no point of ℰ has a negative second entry.
    ///

    *Here the first lesson ends. The second one counts what a solver is given, and what is lost.*

    ## 8.3 What CVXPY makes of (11)

    Apply this to every pair. Everything else is linear, except *A* ⪰ 0:

    {formulas("CONIC_M_STEP")}

    ### The same, by CVXPY

    Here is a small M-step, as CVXPY reads it:
    """)


@app.cell
def _():
    _X, _y = some_irises(every=10)
    objective = MStepObjective(PairSet.from_labels(_X, _y), trace_weight=1.0)
    problem = state_m_step(objective)
    data, chain, inverse = problem.get_problem_data("SCS")
    F, h, c, cones = data["A"], data["b"], data["c"], data["dims"]

    m, N = objective.pairs.n_features, objective.pairs.n_labeled + objective.pairs.n_unlabeled
    triangle = m * (m + 1) // 2
    assert F.shape == (len(h), len(c)) == (7 * N + triangle, 3 * N + triangle)
    assert (cones.zero, cones.nonneg, cones.exp, cones.psd) == (0, N, 2 * N, [m])
    assert F.nnz <= 6 * N + N * triangle + triangle
    return F, N, chain, cones, data, inverse, m, objective, problem, triangle


@app.cell(hide_code=True)
def _(N, m, problem):
    mo.md(f"""
    ```text
    {problem.format_labeled()}
    ```

    There are *m* = {m} features and *N* = {N} pairs.

    ### The chain of reductions

    A **chain of reductions** turns this tree of expressions into numbers; each takes a problem and
    returns an equivalent one. Apply them one by one, and count what is there after each:
    """)


@app.cell
def _(chain, problem):
    def count(stated):
        """The variables of a problem, and its rows by kind, at any stage of the chain."""
        if isinstance(stated, dict):  # what the solver gets
            cones = stated["dims"]
            rows = {"NonNeg": cones.nonneg, "SvecPSD": sum(k * (k + 1) // 2 for k in cones.psd)}
            return len(stated["c"]), rows | {"ExpCone": 3 * cones.exp}
        is_tree = isinstance(stated, cp.Problem)
        rows = Counter()
        for constraint in stated.constraints:
            rows[type(constraint).__name__] += constraint.size
        return sum(v.size for v in stated.variables()) if is_tree else stated.x.size, rows

    _stated, stages = problem, [("(11) as stated", *count(problem))]
    for _reduction in chain.reductions:
        _stated, _ = _reduction.apply(_stated)
        stages.append((type(_reduction).__name__, *count(_stated)))
    assert stages[-1][1] == len(_stated["c"])
    assert sum(stages[-1][2].values()) == len(_stated["b"])
    return (stages,)


@app.cell(hide_code=True)
def _(stages):
    _does = {
        "(11) as stated": "A tree of expressions; *A* is declared PSD.",
        "FlipObjective": "Turns a maximum into a minimum.",
        "Dcp2Cone": "Each atom that is not affine becomes a variable with cones, as in 8.2.",
        "CvxAttr2Constr": "PSD, a property of *A*, becomes a constraint. Of *A* a triangle stays.",
        "ExactCone2Cone": "Of the PSD constraint a triangle stays too, scaled: see 8.4.",
        "EliminateZeroSized": "Drops what is empty; here nothing.",
        "ConeMatrixStuffing": "All variables become one vector *x*, all coefficients *F*, *h* and"
        " *c*, with room for the parameters: the trace weight, *G* and β.",
        "SCS": "Puts in the parameters, and sorts the rows as this solver wants them.",
    }
    _rows = [
        f"| `{_name}`: {_does.get(_name, 'Another step of this version of CVXPY.')} "
        f"| {_variables} | {', '.join(f'{_k} {_n}' for _k, _n in _kinds.items()) or 'none'} |"
        for _name, _variables, _kinds in stages
    ]
    _head = ["| reduction | variables | rows |", "| --- | --- | --- |"]
    mo.md("\n".join([*_head, *_rows]))


@app.cell(hide_code=True)
def _(F, objective, stages, triangle):
    _entries, _total = objective.pairs.n_features**2, F.shape[1]
    _zeros = 1 - F.nnz / (F.shape[0] * F.shape[1])
    mo.md(f"""
    ### How large it is

    *A* begins with {_entries} entries and ends with {triangle}, one triangle of it. Yet
    the solver gets **{_total} variables** and {F.shape[0]} rows: {stages[-1][2]["ExpCone"]} of
    them are in exponential cones. The matrix *F* is sparse: {_zeros:.1%} of its entries are zeros,
    and solvers depend on that.

    {formulas("SIZES")}

    ### The dual is a little smaller

    The dual of chapter 3 has no logistic terms but entropies, two for each pair, and an entropy
    is one exponential cone without any inequality:

    {formulas("ENTROPY_CONE")}

    Why: divide −*p* times the logarithm of *p* ≥ ξ by *p* > 0, take exponentials, multiply by *p*.
    (At *p* = 0 both sides say ξ ≤ 0.) So each pair has the variables *p*ₖ and two bounds, and 6
    rows. The cones for *p* and 1 − *p* leave no room outside of [0, 1], so that needs no rows.
    *M*(*p*) ⪰ 0 is one triangle of a matrix.

    {formulas("DUAL_SIZES")}

    Both grow **linearly in the number of pairs**, and that grows with the square of the number of
    points. CVXPY counts the same:
    """)


@app.cell
def _():
    def size(every, formulation):
        """The points, the pairs, and the rows, variables and nonzeros that a solver gets."""
        X, y = some_irises(every)
        stated = MStepObjective(PairSet.from_labels(X, y), trace_weight=1.0)
        matrix = state_m_step(stated, formulation).get_problem_data("SCS")[0]["A"]
        return len(X), len(X) * (len(X) - 1) // 2, *matrix.shape, matrix.nnz

    _chosen = (15, 10, 6, 5, 3, 2)
    sizes = {form: [size(every, form) for every in _chosen] for form in ("primal", "dual")}
    for (_n, _N, _rows, _variables, _nonzeros), (*_, _fewer, _less, _dual_nonzeros) in zip(
        sizes["primal"], sizes["dual"], strict=True
    ):
        assert (_rows, _variables) == (7 * _N + 10, 3 * _N + 10)
        assert (_fewer, _less) == (6 * _N + 10, 3 * _N)
        assert _dual_nonzeros < _nonzeros <= 6 * _N + 10 * _N + 10
    return (sizes,)


@app.cell(hide_code=True)
def _(sizes, triangle):
    _n, _N, _rows, _variables, _ = sizes["primal"][-1]
    mo.md(f"""
    {_n} points make {_N} pairs and {_variables} variables, for a metric of {triangle} numbers. That
    is the price of a general solver. The methods of chapter 5 that work on *A* itself keep its
    {triangle} unknowns and make passes over the pairs.

    /// details | Check: how many variables and rows do 100 points with 10 features make?
    *N* = 4,950 pairs and a triangle of 55 numbers: 3*N* + 55 = 14,905 variables and 7*N* + 55 =
    34,705 rows. The metric has 55 unknowns.
    ///

    ## 8.4 What survives the translation

    The solver returns *x* and a multiplier λ, with one entry for each row. CVXPY inverts the chain,
    from the last reduction to the first: it finds the entries of *A* in *x*, makes a matrix of
    them, and forgets ξ and χ. `problem.value` is the objective **of (11)** at this matrix.

    ### Why the square root of 2

    A solver sees vectors, and of a symmetric matrix only one triangle. Off the diagonal each entry
    is multiplied by the square root of 2, because it stands for two:

    {formulas("TRIANGLE")}

    With this factor, lengths and angles of the vectors are those of the matrices. That is needed
    twice:

    - *The cone stays its own dual.* Without it: take *v* = (1, −1). Then *A*₁₁ − 2*A*₁₂ + *A*₂₂ =
      *v*<sup>⊤</sup>*Av* ≥ 0, so for the plain triangle (*A*₁₁, *A*₁₂, *A*₂₂) the vector (1, −2, 1)
      is in the dual cone. Read as a matrix it has the eigenvalues −1 and 3: it is not PSD.
    - *The projection stays the clip of chapter 1*, the nearest point in the Frobenius norm. SCS
      projects in every step.
    """)


@app.cell
def _(F, cones, m, triangle):
    # The PSD rows of F come after the equations and the inequalities; one entry in each.
    _start = cones.zero + cones.nonneg
    _factors = np.sort(np.abs(F[_start : _start + triangle].data))
    assert np.allclose(_factors, [1] * m + [np.sqrt(2)] * (triangle - m))

    _rng = np.random.default_rng(2)
    _A, _B = (M @ M.T for M in _rng.normal(size=(2, m, m)))
    _i, _j = np.triu_indices(m)
    _scale = np.where(_i == _j, 1.0, np.sqrt(2))
    of_matrices, plain = np.sum(_A * _B), _A[_i, _j] @ _B[_i, _j]
    scaled = (_scale * _A[_i, _j]) @ (_scale * _B[_i, _j])
    assert np.isclose(scaled, of_matrices)
    assert not np.isclose(plain, of_matrices, rtol=1e-2)
    assert np.allclose(np.linalg.eigvalsh([[1, -2], [-2, 1]]), [-1, 3])
    return of_matrices, plain, scaled


@app.cell(hide_code=True)
def _(of_matrices, plain, scaled):
    mo.md(f"""
    Two random metrics have the inner product {of_matrices:.4f}; their scaled triangles
    {scaled:.4f}, their plain triangles {plain:.4f}.

    ### The multipliers contain *p*

    Each pair has two exponential cones. Let λ and λ′ be their multipliers at the optimum, with the
    score written out in the cones. (They exist by Slater's condition: *A* = *I* and large ξₖ
    satisfy all constraints strictly.)

    {formulas("PAIR_CONDITIONS")}

    1. *First line.* The Lagrangian is least at the optimum, so its slopes are 0. ξₖ stands in the
       cost and, with a minus, in both cones: that is the first equation. χ₁ and χ₂ stand in one
       cone each and in the same inequality, so λ₃ and λ₃′ are both the multiplier of that.
    2. *Second line.* By complementary slackness (chapter 7) the inner product of λ and its triple
       is 0. With the smallest *x*₃ it is no larger, and never negative: so it is 0 as well, the
       least value of the function in step 2 of 8.2. Hence the slope of that is 0 here, where *x*₁ =
       −ξₖ. For λ′ the same, with *x*₁ = *s*ₖ − ξₖ.
    3. *Together.* The second line gives λ₁′ = *e*<sup>*s*ₖ</sup>λ₁; their sum is −*c*ₖ.

    {formulas("PAIR_MULTIPLIERS")}

    The solver's dual vector thus contains the probabilities of chapter 3.
    """)


@app.cell
def _(chain, data, inverse, objective, problem):
    optimum = solve_m_step(objective, tol=1e-10)
    assert optimum.certificate.relative_gap < 1e-9

    def solve_to(digits):
        """What SCS returns, the matrix and the value that CVXPY makes of it, and its proof."""
        options = {"eps_abs": 10.0**-digits, "eps_rel": 10.0**-digits}
        answer = chain.solve_via_data(problem, data, solver_opts=options)
        problem.unpack_results(answer, chain, inverse)
        A = problem.var_dict["A"].value
        return answer, A, problem.value, certify(objective, project(A))

    runs = {asked: solve_to(asked) for asked in range(1, 7)}
    return optimum, runs


@app.cell
def _(F, N, cones, objective, optimum, runs):
    _multipliers = runs[6][0]["y"][-3 * cones.exp :].reshape(-1, 3)  # a row for each cone
    _first = F[-3 * cones.exp :: 3]  # the row of each cone's first entry
    _has_score = np.diff(_first.tocsr().indptr) > 1  # not only xi: the metric is in it
    assert np.sum(_has_score) == N

    _pairs, _mu = objective.pairs, objective.mu
    _rows = np.vstack([_pairs.labeled, _pairs.unlabeled])
    _V = _pairs.points[_rows[:, 0]] - _pairs.points[_rows[:, 1]]
    _p = 1 / (1 + np.exp(objective.threshold - np.sum((_V @ optimum.metric) * _V, axis=1)))
    _c = np.repeat([1.0, _mu], [_pairs.n_labeled, _pairs.n_unlabeled])
    apart = np.max(np.abs(np.sort(-_multipliers[_has_score, 0]) - np.sort(_c * _p)))
    assert apart < 1e-3
    return (apart,)


@app.cell(hide_code=True)
def _(apart):
    mo.md(f"""
    SCS's multipliers and *c*ₖ*p*ₖ at the certified optimum differ by at most {apart:.0e}.

    ### "Optimal" refers to another problem

    SCS stops when its **residuals** are small: how far *h* − *Fx* is from a point of 𝒦, how far
    *F*<sup>⊤</sup>λ + *c* is from 0, and how far the two objectives are apart, each compared with
    the size of the numbers in it. All of that is measured in *F*, *h* and *c*. None of it says
    that *A* is a metric, or how far *f*(*A*) is from the optimum of (11). Ask SCS for a few digits:
    """)


@app.cell(hide_code=True)
def _(optimum, runs):
    _asked = list(runs)
    _infos = [answer["info"] for answer, *_ in runs.values()]
    _residuals = [max(info["res_pri"], info["res_dual"]) for info in _infos]
    _proved = [certificate.relative_gap for *_, certificate in runs.values()]
    _least = [np.linalg.eigvalsh(A)[0] for _, A, *_ in runs.values()]
    _above = [value - optimum.value for _, _, value, _ in runs.values()]

    def _draw(asked):
        k = _asked.index(asked)
        shown = ("digits asked for", 0.7, 6.3)
        judged = Panel(
            f"SCS says: {_infos[k]['status']}",
            shown,
            ("size", 1e-9, 10),
            log="y",
            names={
                GREEN: f"proved gap: {_proved[k]:.0e}",
                BLUE: f"residual: {_residuals[k]:.0e}",
            },
        )
        scale = 5e7  # a value of 1e-8 is still seen
        sizes = {-1e-2: "−10⁻²", -1e-5: "−10⁻⁵", 0: "0", 1e-5: "10⁻⁵", 1e-2: "10⁻²", 10: "10"}
        signs = Panel(
            f"f(A) − optimum: {_above[k]:.0e}",
            shown,
            ("value", *np.arcsinh(scale * np.array([-0.1, 50]))),
            names={ORANGE: "f(A) − optimum", BLUE: "least eigenvalue of A"},
            ticks={"y": {float(np.arcsinh(scale * at)): name for at, name in sizes.items()}},
        )
        for panel, color, values in (
            (judged, GREEN, _proved),
            (judged, BLUE, _residuals),
            (signs, ORANGE, np.arcsinh(scale * np.array(_above))),
            (signs, BLUE, np.arcsinh(scale * np.array(_least))),
        ):
            panel.line(_asked, values, color)
            panel.dots(_asked, values, color)
            panel.line([asked] * 2, panel.axes["y"][1:], BLACK, width=1)
        signs.line([0, 7], [0, 0], BLACK, width=1)
        return judged, signs

    Moving("Digits asked of SCS:", [1, 2, 3, 4, 5, 6], 3, _draw)


@app.cell
def _(objective, optimum, runs):
    too_good = [k for k, (_, A, value, _) in runs.items() if value < optimum.certificate.dual_value]
    assert len(too_good) > 0
    assert all(np.linalg.eigvalsh(runs[k][1])[0] < 0 for k in too_good)

    loose = state_m_step(objective, "dual")
    loose.solve(solver="SCS", eps_abs=1e-2, eps_rel=1e-2)
    p = np.concatenate([variable.value for variable in loose.variables()])
    assert np.max(p) > 1
    assert loose.value == -np.inf  # outside [0, 1] the entropy is minus infinity
    residual = loose.solver_stats.extra_stats["info"]["res_pri"]
    largest = np.max(np.abs(loose.get_problem_data("SCS")[0]["b"]))
    return largest, loose, p, residual, too_good


@app.cell(hide_code=True)
def _(largest, loose, p, residual, runs, too_good):
    mo.md(f"""
    - The proved gap, which is relative, and the residuals, which are not, are different things: at
      one digit the first is {runs[1][3].relative_gap:.1g}, the largest of the others
      {max(runs[1][0]["info"][name] for name in ("res_pri", "res_dual")):.1g}.
    - At {len(too_good)} of {len(runs)} positions, *f*(*A*) is **below a proved lower
      bound**. That is no contradiction: the bound holds for metrics, and these *A* have a negative
      eigenvalue. The residual has moved them out of the cone. (`certify` gets their projection.)
    - *The dual*, solved to two digits: the status is "{loose.status}", {np.sum(p > 1)} of the
      {len(p)} probabilities are above 1, the largest is {np.max(p):.3f}. The entropy of such a
      number is −∞, and so is `problem.value`. SCS has a primal residual of {residual:.2g}, but
      calls it small: *h* has an entry of size {largest:.0f}.

    ### Two certificates

    Two functions prove something in spite of all that. `certify` is about (11) itself: it takes the
    points and any metric, however it was found (chapter 4). `certify_problem` is about the conic
    program: it takes *F*, *h* and *c* as exact numbers (chapter 10). Both give a proof, and neither
    uses the solver's status.
    """)


@app.cell
def _(objective, optimum, problem):
    _dual = state_m_step(objective, "dual")
    enclosures = {
        "`certify`: (11) itself": (
            optimum.certificate.dual_value,
            optimum.certificate.primal_value,
        ),
        "`certify_problem`: (11) in cones": certify_problem(problem),
        "`certify_problem`: its dual in cones": certify_problem(_dual),
    }
    enclosures = {
        name: found if isinstance(found, tuple) else (found.lower, found.upper)
        for name, found in enclosures.items()
    }
    # One number lies in all three, up to the rounding in which CVXPY makes F, h and c.
    assert max(low for low, _ in enclosures.values()) <= 1e-9 + min(
        high for _, high in enclosures.values()
    )
    assert all(high - low < 1e-3 for low, high in enclosures.values())
    _rows = [
        f"| {name} | {floor(low, 10)} | {ceiling(high, 10)} |"
        for name, (low, high) in enclosures.items()
    ]
    mo.md("\n".join(["| about | optimum ≥ | optimum ≤ |", "| --- | --- | --- |", *_rows]))


@app.cell(hide_code=True)
def _(N, objective, triangle):
    _unlabeled = objective.pairs.n_unlabeled
    mo.md(f"""
    /// details | Check: SCS reports *f*(*A*) = 20.1, but 20.3 is a proved lower bound. What is *A*?
    Not a metric, since the bound holds for all metrics: *A* has a negative eigenvalue. Or the value
    was not computed at *A*.
    ///

    ## Questions

    /// details | 1. Why not ask for *e*<sup>*s*</sup> ≤ χ, and that the logarithm of 1 + χ is ≤ ξ?
    The first is a cone. The second is not convex: it keeps a concave function below a bound, and
    the points (χ, ξ) = (0, 0) and (*e*² − 1, 2) satisfy it with equality, but their midpoint, at ξ
    = 1, does not, since (*e*² + 1)/2 > *e*. Dividing by *e*<sup>ξ</sup> first makes both
    parts convex.
    ///

    /// details | 2. (11) as printed has two logistic terms per unlabeled pair. How many rows?
    7 for each labeled and 14 for each unlabeled pair. The small M-step above has {_unlabeled}
    unlabeled ones among its {N} pairs, so it would have {7 * (N + _unlabeled) + triangle} rows, not
    {7 * N + triangle} as here. The difference is what the identity of section 2.3 saves.
    ///

    /// details | 3. All residuals are 0, exactly. What follows for (11)?
    Then *h* − *Fx* is in 𝒦, λ in its dual, and both have the same objective: *x* is optimal in
    cones, by weak duality. By 8.2, *A* is optimal for the (11) whose numbers are in *F*, *h* and
    *c*. Residuals are good tests. But in practice they are never exactly 0, and small is not a
    proof.
    ///

    ## Exercise

    [Problem set 8](../exercises/set_8_cones.py): find the dual of a given cone by hand, then write
    the logistic term in CVXPY with `cp.ExpCone` and get the same optimum. Then break it: find a
    point within a solver's tolerance of the cone where the inequality you meant is far from true.
    `seraph-cvx check-exercise set8 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

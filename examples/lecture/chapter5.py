"""5 Solvers, and what they say of themselves"""

import marimo

app = marimo.App(app_title="5 Solvers, and what they say of themselves")

with app.setup:
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import formulas, some_irises
    from scipy.optimize import minimize

    from seraph_cvx import MStepObjective, PairSet, certify, compare_solvers
    from seraph_cvx.solvers.solution import gradient_method


@app.cell(hide_code=True)
def _():
    mo.md("""
    # 5 Solvers, and what they say of themselves

    **Goal.** You can explain four ways to solve the M-step, what a step of each costs, how
    each one judges itself, and why that is not the same as being right.

    **Time.** 20 minutes. **You need** the projection of chapter 1 and the gap of chapter 4.

    **In Boyd and Vandenberghe's book:** 9.3 (gradient descent), 9.5 (Newton's method), 11.2 and
    11.3 (barriers).
    """)


@app.cell
def _():
    X, y = some_irises(every=5, standardized=True)  # 30, nine with a label; the metric is 4 x 4
    pairs = PairSet.from_labels(X, y)
    objective = MStepObjective(pairs)
    return X, objective, pairs


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## 5.1 Projected gradient, and momentum

    Step against the gradient, then return to the cone: the paper's method. A step costs one
    pass over the pairs and one eigendecomposition.

    {formulas("PROJECTED_GRADIENT", "FISTA")}

    FISTA takes the gradient a little farther in the direction of the last step (**momentum**).
    After *t* steps, *f* exceeds its minimum by at most a constant times 1/*t* without momentum, and
    1/*t*² with momentum: chapter 9 proves both. (No method that uses only gradients has a better
    rate than 1/*t*² on all problems of all sizes.)

    **What they say about themselves:** "the step is short", "*f* hardly falls". Neither bounds
    *f*(*A*) minus the optimum.
    """)


@app.cell
def _(objective):
    counts = [1, 3, 10, 30, 60, 100, 150, 200, 300, 500]
    methods = {
        "projected gradient": lambda k: gradient_method("projected-gradient", objective, 1e-12, k),
        "FISTA": lambda k: gradient_method("fista", objective, 1e-12, k),
    }
    gaps = {
        name: [certify(objective, run(k).metric).relative_gap for k in counts]
        for name, run in methods.items()
    }
    return counts, gaps


@app.cell(hide_code=True)
def _(counts, gaps):
    def _draw(chosen):
        k = counts.index(chosen)
        colors = dict(zip((BLUE, ORANGE), gaps.items(), strict=True))
        panel = Panel(
            f"Proved after {chosen} steps",
            ("steps", 1, counts[-1]),
            ("certified relative gap", 1e-9, 10),
            log="xy",
            names={color: f"{name}: {values[k]:.0e}" for color, (name, values) in colors.items()},
        )
        for color, (_, values) in colors.items():
            panel.line(counts, values, GRAY, width=1)
            panel.line(counts[: k + 1], values[: k + 1], color)
            panel.dots(counts[: k + 1], values[: k + 1], color)
        return [panel]

    Moving("Steps:", counts, 200, _draw)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    The curves show the gap that can be **proved** after each step. The proved gap falls like a
    power of the true one (section 4.2), so the rates cannot be read off here; section 9.3 draws
    them. The package's FISTA also changes coordinates so that the features have one scale, and
    drops its momentum when it points uphill.

    ## 5.2 Interior points

    An interior-point method stays inside the cone by a **barrier**: minus the logarithm of the
    determinant, with a weight ε, which grows without bound as an eigenvalue goes to 0. Minimize *f*
    plus the barrier for a large ε by Newton's method, reduce ε, and repeat.

    {formulas("CENTRAL_PATH")}

    On this path the gradient is a multiple of *A*<sup>−1</sup>, hence PSD: *p* = σ(*s*) is
    feasible, no anchor is needed, and by chapter 4 the gap is ⟨ε*A*<sup>−1</sup>, *A*⟩ = *m*ε.
    **An interior-point method knows its gap**, as long as it is on the path. Here is one,
    for 4 × 4 metrics in ten coordinates. Its steps are damped: divided by 1 plus their length,
    measured by the curvature. By the curvature of the barrier alone, a step *C* has the length
    ‖*L*<sup>−1</sup>*CL*<sup>−⊤</sup>‖, where *A* = *LL*<sup>⊤</sup>, and that is then below 1, so
    that *A* + *C* is still positive definite.
    """)


@app.cell
def _(X, objective, pairs):
    rows = np.vstack([pairs.labeled, pairs.unlabeled])
    V = X[rows[:, 0]] - X[rows[:, 1]]
    c = np.repeat([1.0, objective.mu], [len(pairs.labeled), pairs.n_unlabeled])
    upper = np.triu_indices(4)
    E = np.zeros((10, 4, 4))  # a basis of the symmetric matrices
    E[np.arange(10), upper[0], upper[1]] = E[np.arange(10), upper[1], upper[0]] = 1.0
    features = np.einsum("ki,jil,kl->kj", V, E, V)  # v'E_j v

    def newton_step(A, epsilon):
        """Where Newton's method goes for f(A) - epsilon ln det A, and how far in its own norm."""
        d = np.einsum("ki,ij,kj->k", V, A, V)
        p = 1 / (1 + np.exp(objective.threshold - d))
        inverse = np.linalg.inv(A)
        slope = np.einsum("jil,il->j", E, objective.gradient(A) - epsilon * inverse)
        turned = np.einsum("ab,jbc,cd->jad", inverse, E, inverse)
        hessian = features.T @ ((c * p * (1 - p))[:, None] * features)
        hessian = hessian + epsilon * np.einsum("jab,lba->jl", turned, E)
        move = -np.linalg.solve(hessian, slope)
        return np.einsum("j,jil->il", move, E), np.sqrt(-slope @ move / epsilon)

    return (newton_step,)


@app.cell
def _(newton_step, objective):
    central, _A, _epsilon = [], np.eye(4), 10.0
    while _epsilon > 1e-9:
        for _ in range(50):
            _move, _decrement = newton_step(_A, _epsilon)
            if _decrement < 1e-6:
                break
            _A = _A + _move / (1 + _decrement)  # a damped step never leaves the cone
        central.append((_epsilon, certify(objective, _A).relative_gap))
        _epsilon /= 5
    return (central,)


@app.cell(hide_code=True)
def _(central):
    _rows = [f"| {epsilon:.0e} | {4 * epsilon:.0e} | {gap:.0e} |" for epsilon, gap in central[::3]]
    _table = "\n    ".join(["| ε | *m*ε | proved relative gap |", "| --- | --- | --- |", *_rows])
    mo.md(f"""
    {_table}

    The eigenvalues that are 0 at the optimum go to 0 like ε (question 2), so the metric has low
    rank only in the limit. A step solves a system in *m*(*m* + 1)/2 unknowns: 5,050 for a hundred
    features, and the work grows with the cube of that. Conic solvers such as Clarabel do the same
    with the pairs in exponential cones (chapter 8). **What they say about themselves:** residuals
    of the KKT conditions, *in their own scaling*, are small. A small residual is not yet a small
    gap.

    ## 5.3 Newton on a face

    The optimum often has low rank. Then it lies on a **face** of the cone: the metrics for which
    only some of the directions count. Write *A* = *LL*<sup>⊤</sup> with ρ columns and use Newton's
    method on *L*. No projection, no barrier and, if ρ is less than half of *m*, fewer unknowns; but
    the problem in *L* is not convex.

    {formulas("ON_A_FACE")}
    """)


@app.cell
def _(objective):
    def on_a_face(rank):
        """Newton's method in a trust region on L: the metric of each step."""
        shape, visited = (4, rank), []

        def at(x):
            return objective.program.at(x.reshape(shape))

        answer = minimize(
            lambda x: at(x).value,
            np.random.default_rng(1).normal(size=4 * rank),
            jac=lambda x: at(x).factor_gradient.ravel(),
            hessp=lambda x, d: at(x).hessian_product(d.reshape(shape)).ravel(),
            method="trust-ncg",
            callback=lambda x: visited.append(x.reshape(shape) @ x.reshape(shape).T),
            options={"gtol": 1e-6},
        )
        return answer.success, visited

    faces = {rank: on_a_face(rank) for rank in (1, 2, 3, 4)}
    return (faces,)


@app.cell(hide_code=True)
def _(faces, objective):
    def _draw(rho):
        says, visited = faces[int(rho)]
        proved = [certify(objective, A).relative_gap for A in visited]
        word = "converged" if says else "not yet"
        progress = Panel(
            f"ρ = {rho}. It says: {word}",
            ("step", 0, max(len(each) for _, each in faces.values())),
            ("certified relative gap", 1e-11, 10),
            log="y",
        )
        progress.line(range(1, len(proved) + 1), proved, GREEN)
        progress.dots(range(1, len(proved) + 1), proved, GREEN)
        eigenvalues = np.linalg.eigvalsh(objective.gradient(visited[-1]))
        sizes = {float(np.arcsinh(5 * at)): str(at) for at in (-100, -10, -1, 0, 1, 10, 100)}
        signs = Panel(
            "Eigenvalues of ∇f(A) at the end",
            ("number", 0.5, 4.5),
            ("eigenvalue", *np.arcsinh([-500, 500])),
            names={GREEN: "not negative", ORANGE: "negative: a way down"},
            ticks={"x": {k: str(k) for k in range(1, 5)}, "y": sizes},
        )
        for k, value in enumerate(np.arcsinh(5 * eigenvalues), start=1):
            signs.bar((k - 0.4, k + 0.4), (0, value), ORANGE if value < -1e-6 else GREEN)
        signs.line([0, 5], [0, 0], BLACK, width=1)
        return progress, signs

    Moving("Columns of L, ρ:", [1, 2, 3, 4], 1, _draw)


@app.cell(hide_code=True)
def _():
    mo.md("""
    A zero gradient in *L* makes ∇*f*(*A*) vanish on the range of *L* only. The eigenvector of a
    negative eigenvalue (orange) points out of the face: *f* falls in this direction, and the
    eigenvector becomes a new column of *L*. **What the method says about itself:** "the gradient is
    zero", which is true, but not enough. The package solves M-steps in this way; the certificate
    decides when to stop.

    ## 5.4 A race

    The race is between Newton on a face (`newton`), an interior-point solver (CLARABEL) and a
    first-order solver (SCS, section 9.4), the last two on the M-step and on its dual. Each run has
    its own process, and is asked for two digits or for four. The table has the runs that *claim*
    the tolerance. The true gap is measured from the best lower bound that any answer proved, so it
    may be too large by the error of that bound; the next column has the gap that the answer itself
    proves.
    """)


@app.cell
def _(objective):
    race = compare_solvers(
        objective,
        solvers=["newton", "CLARABEL", "SCS"],
        tols=[1e-2, 1e-4],
        time_limit=8.0,
    )
    return (race,)


@app.cell(hide_code=True)
def _(race):
    _claims = [r for r in race.rows if r["claims"]]
    _false = [r for r in _claims if r["true_gap"] > r["tol"]]
    _unproved = [r for r in _claims if r["proved_gap"] > r["tol"]]
    _rows = [
        f"| {r['solver']} {r['formulation']} | {r['tol']:g} | {r['true_gap']:.0e} | "
        f"{r['proved_gap']:.0e} |"
        for r in _claims
    ]
    _head = ["| solver | claimed | true gap | proved gap |", "| --- | --- | --- | --- |"]
    _table = "\n    ".join([*_head, *_rows])
    mo.md(f"""
    {_table}

    In this race {len(_claims)} answers claim the tolerance; **{len(_false)}** of the claims are
    false, and {len(_unproved)} are not proved by the answer's own certificate. In the whole
    [comparison](../solver-comparison/README.md), 18 entrants on 28 instances, 99 of 3,166 claims
    were false.

    - **Projected gradient, FISTA:** about *m*²/2 unknowns; a step is a pass over the pairs
      and an eigendecomposition; they judge themselves by the length of a step.
    - **Interior points:** about *m*²/2 unknowns, more in conic form; a step is a linear system;
      they judge themselves by residuals, or by *m*ε on the path.
    - **Newton on a face:** *m*ρ unknowns; a step is a few passes; it judges itself by the gradient.
    - **In this course** all of them are judged by the certificate.
    """)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## Questions

    /// details | 1. Why is "*f* fell by less than 10⁻⁹ in the last step" no evidence?
    Short steps make small changes anywhere: with a tiny step length every point looks optimal. The
    gap does not depend on how the point was reached.
    ///

    /// details | 2. On the central path all eigenvalues are positive. How can the rank fall?
    It falls in the limit. On the path *A*∇*f*(*A*) = ε*I*, so if an eigenvalue of the gradient
    stays away from 0, the corresponding eigenvalue of *A* goes to 0 like ε.
    ///

    /// details | 3. Converged on a face, and ∇*f* has a negative eigenvalue. What next?
    Add its eigenvector *u* as a column. The new column must not start at 0, where the gradient in
    *L* is zero again. So one first minimizes *f*(*A* + θ*uu*<sup>⊤</sup>) over θ > 0.
    ///

    ## Exercise

    [Problem set 5](../exercises/set_5_solvers.py): three problems, one by hand, one in CVXPY and
    one in which you break something. `seraph-cvx check-exercise set5 FILE` says what is wrong.

    **Longer.** [Exercise 8](../exercises/exercise_8_own_solver.py): write your own solver, and let
    the certificate judge it. *Hint:* how do you notice that a step was too long, without knowing
    the curvature? Compare *f* after the step with what the gradient and the length promised.
    `seraph-cvx check-exercise 8 FILE` says what is wrong.
    """)


if __name__ == "__main__":
    app.run()

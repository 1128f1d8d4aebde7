"""1 Convex sets and the cone of metrics"""

import marimo

app = marimo.App(app_title="1 Convex sets and the cone of metrics")

with app.setup:
    import marimo as mo
    import numpy as np
    from drawing import BLACK, BLUE, GRAY, GREEN, ORANGE, Moving, Panel
    from lecture import formulas
    from sklearn.datasets import load_iris, load_wine
    from sklearn.preprocessing import StandardScaler

    from seraph_cvx import MStepObjective, PairSet


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    # 1 Convex sets and the cone of metrics

    **Goal.** You can say what a metric is, why all metrics together form a convex cone, and why the
    nearest metric to any symmetric matrix is found by setting its negative eigenvalues to zero.

    **Time.** 20 minutes. **You need** eigenvalues and inner products.

    **In Boyd and Vandenberghe's book:** 2.1 to 2.3 (convex sets and cones), 2.6.1 (dual cones),
    8.1.1 (projection).

    ## 1.1 A metric is a matrix

    Two flowers differ by a vector *v*: so many centimeters of petal, so many of sepal. How
    different are they? Euclid adds the squares. A symmetric matrix *A* weighs the features and
    their products: the squared distance is *v*<sup>⊤</sup>*Av*.

    It should never be negative, whatever the two flowers. That is a condition on *A* alone:

    {formulas("METRIC_CONE")}

    Such an *A* is called **positive semidefinite** (PSD). Written in its eigenvectors, *A* is
    diagonal, so the condition says: no eigenvalue is negative. An eigenvalue of 0 is allowed: a
    direction that the metric does not see.

    Nothing else is needed. A PSD matrix is *A* = *LL*<sup>⊤</sup> for some *L* (the eigenvectors
    times the square roots of the eigenvalues), and then *v*<sup>⊤</sup>*Av* =
    ‖*L*<sup>⊤</sup>*v*‖²: the squared Euclidean distance after a linear map. So its square root
    obeys the triangle inequality. Two different flowers may be at distance 0; strictly speaking *A*
    gives a *pseudo*metric.

    ## 1.2 The metrics form a convex cone

    Hold *v* still and let *A* vary. Then *v*<sup>⊤</sup>*Av* is **linear** in *A*, and
    *v*<sup>⊤</sup>*Av* ≥ 0 is a half-space of matrices. The metrics are what all these half-spaces,
    one for each *v*, have in common.

    - An intersection of convex sets is convex: every mixture (1 − θ)*A* + θ*B* of two metrics,
      0 ≤ θ ≤ 1, is a metric.
    - If *A* is a metric, so is every multiple of it that is not negative. That makes the set a
      **cone**.

    Here are two metrics made from iris flowers: the inverse covariance of the sepals of *setosa*,
    called *A*, and of *virginica*, called *B*, both scaled to the trace 2. Between them, at 0 ≤ θ ≤
    1, every mixture is a metric. Farther out you leave the cone sooner or later: the eigenvalues of
    *B* − *A* sum to 0, so one of them is negative, which settles θ > 1, and one is positive, which
    settles θ < 0.

    The smallest eigenvalue is concave in θ: it is the smallest of the numbers *v*<sup>⊤</sup>*Av*
    over all *v* of length 1, each of which is linear in the matrix.
    """)


@app.cell
def _():
    iris = load_iris()

    def inverse_covariance(kind):
        sepals = iris.data[iris.target == kind, :2]
        metric = np.linalg.inv(np.cov(sepals.T))
        return 2.0 * metric / np.trace(metric)

    A, B = inverse_covariance(0), inverse_covariance(2)
    return A, B


@app.cell(hide_code=True)
def _(A, B):
    def _draw(theta):
        mixed = (1 - theta) * A + theta * B
        turn = np.linspace(0, 2 * np.pi, 181)
        v = np.array([np.cos(turn), np.sin(turn)])
        squared = np.sum(v * (mixed @ v), axis=0)  # of the vectors of length 1
        ball = Panel(
            "Where the squared distance from the center is 1",
            ("length", -4, 4),
            ("width", -4, 4),
            names={BLUE: "it is 1", ORANGE: "it is negative"},
            square=True,
        )
        ball.line(*(v / np.sqrt(np.where(squared > 1e-4, squared, np.nan))), BLUE)
        negative = [8 * v[:, k] if squared[k] < 0 else (0, 0) for k in range(181)]
        ball.area(*np.transpose(negative)[[0, 1, 1]], ORANGE, 0.4)
        lowest = Panel(
            "The smallest eigenvalue is concave in θ",
            ("θ", -1, 2.5),
            ("eigenvalue", -1.2, 0.6),
            names={BLUE: "smallest eigenvalue", GRAY: "mixtures"},
        )
        thetas = np.linspace(-1, 2.5, 71)
        eigenvalues = [np.linalg.eigvalsh((1 - at) * A + at * B)[0] for at in thetas]
        here = np.linalg.eigvalsh(mixed)[0]
        lowest.bar((0, 1), (-2, 2), GRAY, 0.2)
        lowest.line([-1, 2.5], [0, 0], BLACK, width=1)
        lowest.line(thetas, eigenvalues, BLUE)
        lowest.dots(theta, here, BLUE if here >= 0 else ORANGE, 7)
        return ball, lowest

    Moving("Position θ:", [round(k / 4, 2) for k in range(-4, 11)], 0.5, _draw)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    Orange marks the directions in which the "squared distance" is negative: the ellipse has opened
    into a hyperbola, and the matrix is not a metric. Gray marks the mixtures, 0 ≤ θ ≤ 1.

    ## 1.3 The nearest metric: clip the eigenvalues

    Gradient steps take no account of the cone and may leave it. The remedy is to go back to the
    nearest metric. For that we need lengths and angles of matrices: ⟨*B*, *C*⟩ is the sum of the
    products of their entries, so that ⟨*C*, *vv*<sup>⊤</sup>⟩ = *v*<sup>⊤</sup>*Cv*, and ‖*B*‖, the
    Frobenius norm, is the square root of ⟨*B*, *B*⟩.

    {formulas("PROJECTION")}

    **Why.** Three steps, and each one is short.

    1. *Rotate.* The Frobenius norm does not change under rotations, and neither does the cone. So
       we may look from the eigenvectors *u*ᵢ of *B*, where *B* is diagonal with entries αᵢ.
    2. *Off the diagonal* *B* has zeros, so any other entry of *A* there only adds to the distance.
       Setting them to 0 leaves a metric: the diagonal entries of a PSD matrix are ≥ 0 (take *v* =
       *u*ᵢ), and a diagonal matrix with entries ≥ 0 is PSD. So the nearest *A* is diagonal.
    3. *On the diagonal* each entry is chosen by itself, and the nearest number ≥ 0 to αᵢ is max(0,
       αᵢ).
    """)


@app.cell(hide_code=True)
def _():
    def _draw(degrees):
        b = 1.5 * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
        clipped = np.maximum(b, 0)
        names = {ORANGE: "B", GREEN: "P(B)"}
        plane = Panel(
            "Eigenvalues of B and of P(B)",
            ("α₁", -2, 2),
            ("α₂", -2, 2),
            names=names,
            square=True,
        )
        plane.bar((0, 2), (0, 2), GREEN, 0.2)
        plane.write(1.4, 1.7, "cone")
        plane.line(*np.array([b, clipped]).T, GRAY, "6 4")
        plane.dots(*b, ORANGE, 7)
        plane.dots(*clipped, GREEN, 8, hollow=True)
        form = Panel(
            "v⊤Bv and v⊤P(B)v, |v| = 1",
            ("direction of v in degrees", 0, 180),
            ("value", -1.7, 1.7),
            names=names,
            ticks={"x": {at: str(at) for at in range(0, 181, 45)}},
        )
        phi = np.linspace(0, np.pi, 61)
        squares = np.array([np.cos(phi) ** 2, np.sin(phi) ** 2])
        form.line([0, 180], [0, 0], BLACK, width=1)
        form.line(np.degrees(phi), b @ squares, ORANGE)
        form.line(np.degrees(phi), clipped @ squares, GREEN, "6 4")
        return plane, form

    Moving("Angle of B in the plane of its eigenvalues:", list(range(-180, 181, 30)), -30, _draw)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    ## 1.4 How to recognize the projection

    Let *A* = *P*(*B*). What the clip adds, *A* − *B*, has the eigenvalues max(0, −αᵢ) and the same
    eigenvectors. So it is PSD itself, and it is orthogonal to *A*: where one eigenvalue is
    positive, the other is 0.

    {formulas("PROJECTION_CONDITIONS")}

    **Why this is enough.** Let *C* be any other metric.

    {formulas("OTHER_METRICS")}

    The last term is 2⟨*C*, *A* − *B*⟩ − 0 ≥ 0, because the inner product of two PSD matrices is
    never negative (question 2). So *C* is farther away, its squared distance by at least
    ‖*C* − *A*‖². The same three conditions come back in chapter 3, under the name of Karush, Kuhn
    and Tucker.

    ## 1.5 On real data

    178 wines, 13 standardized features, 4 labels in each of 3 classes. We start from the identity,
    take one gradient step on the function *f* of chapter 2 to a matrix *B*, and go back to the
    cone.
    """)


@app.cell
def _():
    wine = load_wine()
    points = StandardScaler().fit_transform(wine.data)
    labels = np.full(len(points), -1)
    for kind in range(3):
        labels[np.flatnonzero(wine.target == kind)[::12][:4]] = kind
    objective = MStepObjective(PairSet.from_labels(points, labels))
    start = np.eye(13)
    gradient = objective.gradient(start)
    return gradient, objective, start


@app.cell
def _(gradient, start):
    def project(matrix):
        eigenvalues, vectors = np.linalg.eigh(matrix)
        return (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T

    stepped = start - 0.01 * gradient
    nearest = project(stepped)
    cut = nearest - stepped
    assert np.linalg.eigvalsh(nearest)[0] > -1e-9
    assert np.linalg.eigvalsh(cut)[0] > -1e-9
    assert abs(np.sum(nearest * cut)) < 1e-9
    return (project,)


@app.cell(hide_code=True)
def _():
    mo.md(f"""
    Negative eigenvalues are cut to 0. That is how metrics of low rank come about: a direction
    that is not worth its penalty is pushed out of the cone, and the clip removes it. (Section 3.7
    says which directions those are.)

    ## Questions

    /// details | 1. Is the set of matrices of rank at most 1 convex? Is it a cone?
    A cone, yes: multiples do not raise the rank. Convex, no: the mean of diag(1, 0) and diag(0, 1)
    has rank two. This is why one penalizes the trace, which is linear, instead of bounding the
    rank.
    ///

    /// details | 2. Why is ⟨*C*, *A*⟩ ≥ 0 for all PSD *A* if and only if *C* is PSD?
    Write *A* in its eigenvectors:

    {formulas("INNER_PRODUCT")}

    If *C* is PSD, this is a sum of products of numbers ≥ 0. If it is not, some *v* has
    *v*<sup>⊤</sup>*Cv* < 0; take *A* = *vv*<sup>⊤</sup>. The matrices that have
    an inner product ≥ 0 with every point of a cone are its **dual cone**. So the cone of metrics is
    its own dual, which makes chapter 3 work.
    ///

    /// details | 3. Why not take absolute values of the eigenvalues instead of clipping them?
    The matrix with the eigenvalues |αᵢ| is PSD as well, but farther away: αᵢ < 0 moves by 2|αᵢ|,
    and by |αᵢ| if it is clipped.
    ///

    ## Exercise

    [Problem set 1](../exercises/set_1_cone.py): three problems, one by hand, one in CVXPY and one
    in which you break something. `seraph-cvx check-exercise set1 FILE` says what is wrong.

    **Longer.** [Exercise 8](../exercises/exercise_8_own_solver.py), TODO 1: write the projection
    yourself; the file checks the conditions of section 1.4. *Hint:* `numpy.linalg.eigh` wants a
    symmetric matrix, and rounding makes most matrices slightly asymmetric. TODO 2, a whole solver,
    belongs to chapter 5; until then `seraph-cvx check-exercise 8 FILE` stops at it, if your
    projection is right.
    """)


if __name__ == "__main__":
    app.run()

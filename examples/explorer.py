"""Choose points, labels and weights; watch the metric and its certificate: seraph-cvx explore."""

# /// script
# [tool.marimo.display]
# theme = "system"
# ///

import marimo

app = marimo.App(app_title="SERAPH: choose, and watch the metric")

with app.setup:
    from base64 import b64encode

    import marimo as mo
    import numpy as np
    from sklearn.datasets import load_iris, make_circles, make_moons

    from seraph_cvx import SERAPH
    from seraph_cvx.plots import MetricDisplay
    from seraph_cvx.plots.style import picture_bytes


@app.cell(hide_code=True)
def _():
    mo.md("""
    # A metric from a few labels

    A few points have a label, the others have none. SERAPH learns a distance from both, and a
    certificate bounds how far its metric can be from the best one. Choose points, move them, change
    a weight, and watch. μ is the weight of the unlabeled pairs, where 1 makes all of them together
    weigh as much as the labeled ones; λ is the weight of the trace of the metric; and η is the
    squared distance at which a pair is as likely to be similar as not.

    <style>button[id^="radix"][aria-haspopup="menu"] { display: none; }</style>
    """)


@app.function
def draw_points(name, rng):
    """120 points of the plane, standardized, and their true classes."""
    state = int(rng.integers(1_000))
    if name == "two stripes":
        classes = np.repeat([0, 1], 60)
        X = np.column_stack([classes + 0.2 * rng.normal(size=120), 3.0 * rng.normal(size=120)])
    elif name == "two moons":
        X, classes = make_moons(120, noise=0.1, random_state=state)
    elif name == "two rings":
        X, classes = make_circles(120, noise=0.05, factor=0.4, random_state=state)
    else:
        flowers = load_iris()
        kept = np.sort(rng.choice(len(flowers.target), 120, replace=False))
        X, classes = flowers.data[kept][:, [1, 2]], flowers.target[kept]
    return (X - X.mean(axis=0)) / X.std(axis=0), classes


@app.cell(hide_code=True)
def _():
    data = mo.ui.dropdown(
        ["two stripes", "two moons", "two rings", "iris: sepal width, petal length"],
        value="two stripes",
        label="Points",
    )
    n_labels = mo.ui.slider(2, 20, value=3, show_value=True, label="Labels for each class")
    seed = mo.ui.slider(0, 20, value=0, show_value=True, label="Seed of the draw")
    weights = [0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]
    mu = mo.ui.slider(steps=weights, value=1.0, show_value=True, label="μ, the unlabeled pairs")
    trace_weight = mo.ui.slider(steps=weights[1:], value=1.0, show_value=True, label="λ, the trace")
    threshold = mo.ui.slider(0.25, 4.0, 0.25, value=1.0, show_value=True, label="η, the threshold")
    mo.hstack(
        [mo.vstack([data, n_labels, seed]), mo.vstack([mu, trace_weight, threshold])],
        justify="start",
        gap=1,
        wrap=True,
    )
    return data, mu, n_labels, seed, threshold, trace_weight


@app.cell
def _(data, n_labels, seed):
    _rng = np.random.default_rng(seed.value)
    drawn, classes = draw_points(data.value, _rng)
    y = np.full(len(drawn), -1)
    for _label in np.unique(classes):
        _of_class = np.flatnonzero(classes == _label)
        y[_rng.choice(_of_class, n_labels.value, replace=False)] = _label
    _is_iris = data.value.startswith("iris")
    names = ("sepal width", "petal length") if _is_iris else ("first feature", "second feature")
    moved = drawn.copy()  # which the two sliders of a point change
    count_moves, set_count = mo.state(0)
    labeled = mo.ui.dropdown(
        {f"{k}, of class {classes[k]}": k for k in np.flatnonzero(y >= 0).tolist()},
        value=f"{np.flatnonzero(y >= 0)[0]}, of class {classes[y >= 0][0]}",
        label="Labeled point to move",
    )
    return classes, count_moves, labeled, moved, names, set_count, y


@app.cell(hide_code=True)
def _(labeled, moved, names, set_count):
    def _slider(axis, label):
        def move(to):
            moved[labeled.value, axis] = to
            set_count(lambda count: count + 1)

        start = round(float(np.clip(moved[labeled.value, axis], -4.0, 4.0)), 1)
        return mo.ui.slider(
            -4.0, 4.0, 0.1, value=start, show_value=True, label=label, on_change=move
        )

    across, up = (_slider(k, f"Its {names[k]}") for k in (0, 1))
    mo.hstack([labeled, across, up], justify="start", gap=1, wrap=True)
    return


@app.cell
def _(count_moves, moved):
    count_moves()  # runs this again when a point has moved
    X = moved.copy()
    return (X,)


@app.cell
def _(X, mu, threshold, trace_weight, y):
    _n_labeled_pairs = np.sum(y >= 0) * (np.sum(y >= 0) - 1) // 2
    _n_unlabeled_pairs = len(y) * (len(y) - 1) // 2 - _n_labeled_pairs
    model = SERAPH(
        unlabeled_weight=mu.value * _n_labeled_pairs / _n_unlabeled_pairs,
        trace_weight=trace_weight.value,
        threshold=threshold.value,
        identity_share=0.0,
    ).fit(X, y)
    return (model,)


@app.cell(hide_code=True)
def _(X, classes, labeled, model, names, y):
    _figure = MetricDisplay.from_estimator(
        model, X, classes, features=(0, 1), labeled=y >= 0
    ).draw()
    _figure.axes[0].plot(
        *X[labeled.value], "o", color="black", fillstyle="none", markersize=20, mew=2, zorder=9
    )

    for _panel, _by in zip(_figure.axes, ("", ", transformed"), strict=True):
        _panel.set(xlabel=names[0] + _by, ylabel=names[1] + _by)

    def _address():
        return f"data:image/png;base64,{b64encode(picture_bytes(_figure, 'png')).decode()}"

    _beside = _address()
    for _panel, _place in zip(_figure.axes, _figure.add_gridspec(2, 1), strict=True):
        _panel.set_subplotspec(_place)
    _figure.set_size_inches(5, 9)  # for a phone
    mo.Html(f"""
    <picture><source media="(max-width: 600px)" srcset="{_address()}">
    <img src="{_beside}" width="100%" alt="First the points, with a circle around the one to move,
    and the ellipse of pairs that are as likely similar as not; then the same points where Euclidean
    distances are the learned ones."></picture>
    """)


@app.cell(hide_code=True)
def _(model):
    _rows = " \\\\ ".join("{:.3g} & {:.3g}".format(*_row) for _row in model.m_step_metric_)
    mo.vstack(
        [
            mo.md(
                rf"After {model.n_iter_} iterations: $A = \begin{{pmatrix}}{_rows}\end{{pmatrix}}$"
            ),
            mo.Html(model.certificate_._repr_html_()),
        ]
    )


if __name__ == "__main__":
    app.run()

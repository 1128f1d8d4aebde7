"""Evidence: what holds for all rivals alike, and what they refuse and report."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from seraph_cvx import NotCertified, PairSet, baselines
from seraph_cvx.baselines import GDM, ITML, LDM, LMNN, MFDA, NCA, Euclidean
from seraph_cvx.datasets import load, load_sampling

RIVALS = [getattr(baselines, name) for name in baselines.__all__]
POINTS = np.random.default_rng(0).normal(size=(24, 3))
LABELS = np.arange(24) % 3


@pytest.mark.slow
@parametrize_with_checks([LMNN(tol=1e-2) if rival is LMNN else rival() for rival in RIVALS])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("rival", [GDM, ITML, LDM, MFDA])
def test_constraints_teach_what_the_labels_teach(rival):
    drawn = load_sampling("iris", n_points=50, seed=3)
    pairs = PairSet.from_labels(drawn.X, drawn.y)
    by_pairs = rival().fit(drawn.X, similar=pairs.similar, dissimilar=pairs.dissimilar)
    assert np.array_equal(by_pairs.metric_, rival().fit(drawn.X, drawn.y).metric_)


@pytest.mark.parametrize("rival", [Euclidean, LDM, MFDA, NCA])
def test_repeated_and_constant_features_do_no_harm(rival):
    X, y = load("iris")
    wide = np.column_stack([X, X, np.ones(150)])
    A = rival().fit(wide, np.where(np.arange(150) % 10 == 0, y, -1)).metric_
    assert np.all(np.isfinite(A))


TWICE = np.vstack([POINTS[:1], POINTS[:1], POINTS])
TWO = {"similar": [(0, 1)], "dissimilar": [(0, 2)]}
APART = {"similar": [(0, 1)], "dissimilar": [(2, 3)]}
NOT_BOTH = "1 similar and 1 dissimilar pairs no point has both"


@pytest.mark.parametrize(
    ("model", "X", "supervision", "message"),
    [
        (GDM(), POINTS, {"y": np.arange(24)}, "GDM needs similar pairs"),
        (GDM(), POINTS, {"y": [0] * 24}, "GDM needs dissimilar pairs"),
        (
            GDM(),
            TWICE,
            {"similar": [(0, 1)], "dissimilar": [(0, 3)]},
            "All similar pairs join equal points",
        ),
        (ITML(), TWICE, {"similar": [(0, 1)]}, "joins two equal points"),
        (LMNN(), POINTS, {"similar": [(0, 2)]}, "not from pairs: give y"),
        (LMNN(), POINTS, {}, "LMNN requires y"),
        (LMNN(), POINTS, {"y": [0] * 24}, "two classes at least"),
        (LMNN(), POINTS, {"y": np.arange(24)}, "no point has a target neighbor"),
        (LDM(), POINTS, APART, NOT_BOTH),
        (MFDA(), POINTS, {"similar": [(0, 1)]}, "0 dissimilar pairs have no extent"),
        (MFDA(structure_weight=0.0, ridge=0.0), POINTS, TWO, r"B is singular.*set ridge"),
        (NCA(), POINTS, TWO, "class labels y alone"),
        (NCA(), POINTS, {"y": [0] * 24}, "All 24 points of known class are of one class"),
        (LDM(), np.ones((24, 2)), {"y": LABELS}, "All points are equal"),
        (MFDA(), np.ones((24, 2)), {"y": LABELS}, "All points are equal"),
    ],
)
def test_failure_path_supervision_that_does_not_serve(model, X, supervision, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, **supervision)


PARAMETERS = {
    "tol=0 is out of range": LDM(tol=0.0),
    "max_iter=0": LDM(max_iter=0),
    "principal_components=0": LDM(principal_components=0),
    r"principal_components=1\.5 must be an integer": LDM(principal_components=1.5),
    "n_components=4 must be between 1 and 3": LDM(n_components=4),
    "structure_weight=-1": MFDA(structure_weight=-1.0),
    "ridge=-1": MFDA(ridge=-1.0),
    "n_neighbors=0 must be an integer": MFDA(n_neighbors=0),
    "n_directions=4 must be between 1 and 3, the rank": MFDA(n_directions=4),
    "ridge=-1 ": GDM(ridge=-1.0),
    "solver='newton' is not known.*CLARABEL": GDM(solver="newton"),
    "gamma=0": ITML(gamma=0.0),
    r"bounds\[0\]=0": ITML(bounds=(0.0, 1.0)),
    "push_weight=1": LMNN(push_weight=1.0),
    "n_neighbors=0": LMNN(n_neighbors=0),
}


@pytest.mark.parametrize("message", PARAMETERS)
def test_failure_path_parameters(message):
    with pytest.raises(ValueError, match=message):
        PARAMETERS[message].fit(POINTS, LABELS)


NOT_CLOSED = NotCertified, r"after 1 iteration .* asked for 1e-09"
NOT_CONVERGED = ConvergenceWarning, "max_iter"


@pytest.mark.parametrize(
    ("model", "warning"),
    [
        *((model, NOT_CLOSED) for model in (GDM(), ITML(), ITML(solver="bregman"), LMNN())),
        *((model, NOT_CONVERGED) for model in (LDM(), NCA())),
    ],
)
def test_failure_path_iteration_limit_is_not_silent(model, warning):
    """The warning names the line that calls fit."""
    category, message = warning
    with pytest.warns(category, match=message) as caught:
        model.set_params(max_iter=1, tol=1e-9).fit(POINTS, LABELS)
    assert {warning.filename for warning in caught} == {__file__}
    assert model.n_iter_ <= 2

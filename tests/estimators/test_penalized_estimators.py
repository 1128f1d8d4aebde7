"""Evidence: the estimators hand penalties on unchanged, certify with them, and refuse in words."""

from __future__ import annotations

import numpy as np
import pytest
from instances import descended
from sklearn.utils.estimator_checks import parametrize_with_checks

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    MStepObjective,
    PairSet,
    Status,
    alternate,
    penalties,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.estimators.saving import load_model, save_model
from seraph_cvx.estimators.settings import auto_trace_share
from seraph_cvx.model.m_step_objective import SemiSupervisedObjective
from seraph_cvx.penalties import (
    Diagonal,
    LogDet,
    Penalty,
    Ridge,
    Sparse,
    TraceBound,
)

PRIOR = np.diag([2.0, 1.0, 1.0, 0.5])
BLOCKS = {
    "Diagonal": Diagonal(),
    "Ridge": Ridge(3.0),
    "Ridge, prior": Ridge(3.0, prior=PRIOR),
    "LogDet": LogDet(0.5),
    "LogDet, prior": LogDet(0.5, prior=PRIOR),
    "TraceBound": TraceBound(1.5),
    "Sparse": Sparse(2.0),
}
LONG_FITS = ["Sparse", "TraceBound"]
SMOOTH = ["Ridge", "Ridge, prior", "LogDet", "LogDet, prior"]


class HalfSquare(Penalty):
    """A block of a user: half the squared Frobenius norm."""

    is_smooth = True
    is_coercive = True

    def value(self, A):
        """P(A)."""
        return 0.5 * self.weight * float(np.sum(A * A))

    def subgradient(self, A):
        """Its gradient."""
        return self.weight * A

    def conjugate(self, Z):
        """P*(Z)."""
        return float(np.sum(Z * Z)) / (2.0 * self.weight)


@pytest.mark.slow
@parametrize_with_checks([SERAPH(penalties=[Diagonal()])])
def test_scikit_learn_check(estimator, check):
    check(estimator)


SAMPLING = load_sampling("iris", n_points=40, n_labeled=12, seed=1)
X, Y = SAMPLING.X, SAMPLING.y
PAIRS = PairSet.from_labels(X, Y)


@pytest.fixture(scope="module")
def without_penalties():
    """The matrix of the last M-step."""
    plain = SERAPH(unlabeled_weight="ratio", trace_weight=1.0, sharpness=None)
    return plain.fit(X, Y).m_step_metric_


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG_FITS else name for name in BLOCKS],
)
def test_formulas_agree_the_fit_is_the_alternation_with_the_same_block(without_penalties, name):
    block = BLOCKS[name]
    model = SERAPH(penalties=[block], unlabeled_weight="ratio", trace_weight=1.0, sharpness=None)
    model.fit(X, Y)
    run = alternate(PAIRS, penalties=[block])
    assert model.status_ is Status.CERTIFIED
    assert model.certificate_.relative_gap <= 1e-8
    np.testing.assert_array_equal(model.m_step_metric_, run.metric)
    assert np.isfinite(run.objective.value(model.m_step_metric_))
    assert np.linalg.norm(without_penalties - run.metric) > 1e-3


def test_auto_is_the_trace_weight_without_penalties():
    """The last M-step of the fit is that of the number that "auto" stands for, plus the block."""
    critical = MStepObjective(PAIRS, unlabeled_weight=0.0).critical_trace_weight
    auto = SERAPH(penalties=[Ridge(5.0)]).fit(X, Y)
    given = SERAPH(penalties=[Ridge(5.0)], trace_weight=auto_trace_share(PAIRS) * critical)
    np.testing.assert_array_equal(auto.metric_, given.fit(X, Y).metric_)


def test_a_diagonal_metric_stays_diagonal_with_a_share_of_the_reference():
    model = SERAPH(penalties=[Diagonal()]).fit(X, Y)
    for A in (model.metric_, model.m_step_metric_):
        assert not np.any(A - np.diag(np.diag(A)))
    assert np.min(np.diag(model.metric_)) > np.min(np.diag(model.m_step_metric_))


def test_the_constraints_hold_before_the_share_of_the_identity():
    bound = TraceBound(0.1)
    mixed, whole = (SERAPH(penalties=[bound], identity_share=a).fit(X, Y) for a in ("auto", 0.0))
    assert bound.value(whole.metric_) == 0.0
    np.testing.assert_array_equal(whole.metric_, mixed.m_step_metric_)


def test_blocks_are_equal_only_if_all_their_numbers_are():
    block = LogDet(1.0, prior=PRIOR)
    block.value(PRIOR)  # keeps an inverse
    assert block == LogDet(1.0, prior=PRIOR.copy())
    for numbers in ((1.0,), (2.0, PRIOR), (1.0, 2.0 * PRIOR)):
        assert block != LogDet(*numbers)
    assert block != Ridge(1.0, prior=PRIOR)


@pytest.mark.parametrize(
    "name",
    ["Ridge", "LogDet", pytest.param("TraceBound", marks=pytest.mark.slow)],
)
def test_formulas_agree_a_kernel_takes_blocks_that_mean_the_same_in_all_coordinates(name):
    """With the linear kernel the distances are those of SERAPH among the features."""
    P = np.stack([X[:10], X[10:20]], axis=1)
    settings = {"penalties": [BLOCKS[name]], "trace_weight": 1.0}
    kernel = KernelSERAPH(kernel="linear", **settings).fit(X, Y)
    linear = SERAPH(**settings).fit(X, Y)
    assert kernel.status_ is Status.CERTIFIED
    np.testing.assert_allclose(kernel.pair_distance(P), linear.pair_distance(P), rtol=2e-3)


@pytest.mark.parametrize("name", SMOOTH)
def test_direct_ends_at_a_stationary_point_of_7_with_the_smooth_block(name):
    model = SERAPH(algorithm="direct", penalties=[BLOCKS[name]], trace_weight=1.0)
    model.fit(X, Y)
    assert model.status_ is Status.STATIONARY
    objective = SemiSupervisedObjective(MStepObjective(PAIRS, penalties=[BLOCKS[name]]))
    A = model.m_step_metric_
    assert objective.value_and_gradient(A)[0] == pytest.approx(model.history_[-1], rel=1e-9)
    again = descended(PAIRS, penalties=[BLOCKS[name]], start=A, max_iter=0)
    assert again.stationarity <= 1e-4
    unit = np.eye(4) / np.mean(np.var(X, axis=0))
    assert model.history_[0] == pytest.approx(objective.value(unit))


def direct(**parameters):
    return SERAPH(algorithm="direct", **parameters)


@pytest.mark.parametrize(
    ("estimator", "given", "error", "words"),
    [
        (SERAPH, Ridge(0.1), TypeError, r"no list of penalties.*penalties=\[Ridge"),
        (KernelSERAPH, ["Ridge"], TypeError, "penalties holds 'Ridge', which is not a Penalty"),
        (SERAPH, [Ridge(1.0, prior=np.eye(3))], ValueError, "3 x 3, but the points have 4 feat"),
        (direct, [TraceBound(1.5)], ValueError, r"TraceBound\(1\.5\) is not smooth.*\"em\""),
        *(
            (KernelSERAPH, [BLOCKS[name]], ValueError, r"refers to the features.*use SERAPH")
            for name in ("Diagonal", "Sparse", "Ridge, prior")
        ),
    ],
)
def test_failure_path_penalties_that_an_estimator_does_not_take(estimator, given, error, words):
    with pytest.raises(error, match=words):
        estimator(penalties=given).fit(X, Y)


# Saving


def test_all_blocks_come_back_in_list_or_tuple(tmp_path):
    offered = {name for name in penalties.__all__ if name[0].isupper()}
    offered -= {"Penalty", "PenaltyReport"}
    assert {type(block).__name__ for block in BLOCKS.values()} == offered
    model = SERAPH(penalties=[Ridge(3.0)]).fit(X, Y)
    for given in (list(BLOCKS.values()), tuple(BLOCKS.values())):
        save_model(model.set_params(penalties=given), tmp_path / "model.npz")
        assert load_model(tmp_path / "model.npz").penalties == given


def test_failure_path_a_block_of_ones_own_is_not_written_and_the_cure_works(tmp_path):
    model = SERAPH(penalties=[HalfSquare()]).fit(X, Y)
    assert model.status_ is Status.CERTIFIED
    with pytest.raises(TypeError, match=r"HalfSquare\(1\), a penalty of a class of your own"):
        save_model(model, tmp_path / "model.npz")
    model.certificate_ = None
    save_model(model.set_params(penalties=()), tmp_path / "model.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "model.npz").metric_, model.metric_)

"""Evidence: the dual points that are always feasible, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from instances import SETTINGS, largest_step, random_objective, random_psd

from seraph_cvx import solve_m_step
from seraph_cvx.certificate.estimates import Anchors


def whitened_gradient(objective, Y):
    whitened = objective.basis.matrix
    return whitened.T @ objective.gradient(Y) @ whitened


@pytest.mark.parametrize("setting", ["hyper", "other"])
@pytest.mark.parametrize("seed", range(4))
def test_the_quick_bound_is_the_better_of_the_two_chords(setting, seed):
    """And both are met: near the optimum one of them is far above the entropy alone."""
    objective = random_objective(seed, setting)
    optimum = solve_m_step(objective, tol=1e-10)
    anchors = Anchors.of(objective)
    M, R = objective.whitened_program.recession, objective.basis.regularizer
    rng = np.random.default_rng(seed)
    for share in (0.0, 0.5, 0.99):
        Y = share * optimum.metric + (1.0 - share) * random_psd(rng, 4)
        value, gradient = objective.value_and_gradient(Y)
        tangent, whitened = value - np.sum(gradient * Y), whitened_gradient(objective, Y)
        one, labels = largest_step(whitened, M), largest_step(whitened, R)
        chords = [
            one * tangent - (1.0 - one) * objective.threshold * objective.recession_total,
            labels * tangent + (1.0 - labels) * objective.soft_label_entropy,
        ]
        bound = anchors.quick_bound(tangent, whitened)
        assert bound == pytest.approx(max(*chords, objective.soft_label_entropy), rel=1e-9)
        assert bound <= optimum.certificate.primal_value + 1e-9


def test_each_chord_alone_is_a_bound():
    """Where the other anchor is missing, its chord gives no bound."""
    for seed, setting in enumerate(SETTINGS):
        objective = random_objective(seed, setting)
        anchors = Anchors.of(objective)
        value, gradient = objective.value_and_gradient(np.eye(4))
        whitened = whitened_gradient(objective, np.eye(4))
        bound = anchors.quick_bound(value - np.trace(gradient), whitened)
        assert anchors.entropy_value <= bound <= value
        if SETTINGS[setting]["trace_weight"] == 0.0:
            assert anchors.regularizer_basis is None

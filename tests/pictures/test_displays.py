"""Evidence that the displays show the results they are given."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from instances import random_psd
from pictures import assert_drawn

from seraph_cvx import SERAPH, KernelSERAPH, plots
from seraph_cvx.plots import MetricDisplay, RegionsDisplay
from seraph_cvx.plots.style import picture_bytes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [3.0, 2.0, 1.0, 0.5]
Y = np.where(np.arange(60) < 12, np.arange(60) % 3, -1)
TWENTY = np.arange(60) % 20
METRIC = np.diag([0.5, 0.02, 0.1, 0.0])
FULL_RANK = random_psd(np.random.default_rng(5), 4, rank=4)
ZERO = np.zeros((4, 4))


def regions(metric, gaps=None):
    truth = np.digitize(X[:, 1], [-0.4, 0.4])
    train = np.where(np.arange(30) < 9, truth[:30], -1)
    return RegionsDisplay.from_result(metric, X[:30], train, X[30:], truth[30:], gaps)


CASES = {
    "metric": lambda: MetricDisplay.from_result(METRIC, X, Y),
    "metric of one feature": lambda: MetricDisplay.from_result([[2.0]], X[:, :1], Y),
    "metric of rank 0": lambda: MetricDisplay.from_result(ZERO, X, Y),
    "regions": lambda: regions(FULL_RANK, [0.3, 1e-3, 2e-9]),
    "regions of rank 0": lambda: regions(ZERO),
}


@pytest.mark.once
@pytest.mark.parametrize("case", CASES)
def test_every_display_is_drawn_with_labels(case):
    figure = CASES[case]().draw()
    assert_drawn(figure)
    assert all(ax.get_ylabel() for ax in figure.axes)
    assert figure.axes[-1].get_xlabel()


def test_a_picture_is_saved_with_its_title_and_the_same_bytes_each_time(tmp_path):
    display = CASES["regions"]()
    assert display.draw(tmp_path / "a.png", title="Mine").get_suptitle() == "Mine"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    for ending in ("png", "svg"):
        first, second = (picture_bytes(display.draw(), ending) for _ in range(2))
        assert first == second


def test_no_picture_imports_pyplot():
    for path in Path(plots.__file__).parent.rglob("*.py"):
        assert not re.search("import.*pyplot", path.read_text(encoding="utf-8")), path.name


def test_errors_name_the_culprit():
    with pytest.raises(ValueError, match="one label for each"):
        RegionsDisplay.from_result(METRIC, X, Y[:5], X, TWENTY)


def test_estimators_are_drawn_by_their_own_metric_threshold_and_names():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = SERAPH(threshold=2.0, n_components=1).fit(frame, Y)
    display = MetricDisplay.from_estimator(model, X, Y, features=(0, 1))
    np.testing.assert_allclose(display.section, model.get_mahalanobis_matrix()[:2, :2])
    assert display.threshold == 2.0
    with pytest.raises(ValueError, match=r"draw the columns of model\.transform"):
        MetricDisplay.from_estimator(KernelSERAPH(), X, Y)

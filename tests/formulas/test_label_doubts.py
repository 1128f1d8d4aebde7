"""Class labels of every type: unknown ones are found, doubtful ones are described."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from seraph_cvx import SERAPH, PairSet
from seraph_cvx.pairs.data_warnings import describe_labels

X = np.array([[0.0], [0.1], [2.0], [2.1], [0.2], [1.9]])


@pytest.mark.parametrize(
    "y",
    [
        np.array([0.0, 0.0, 1.0, 1.0, np.nan, np.nan]),
        pd.Series([0, 0, 1, 1, None, None], dtype="Int64"),
        pd.Series(["a", "a", "b", "b", None, None], dtype="string"),
        pd.Series([False, False, True, True, None, None], dtype="boolean"),
        np.array(["a", "a", "b", "b", None, np.nan], dtype=object),
        ["a", "a", "b", "b", "-1", "-1"],
        np.array([False, False, True, True, None, None], dtype=object),
        pd.Series([0, 0, 1, 1, -1, -1], dtype="category"),
    ],
    ids=lambda y: str(getattr(y, "dtype", "list")),
)
def test_what_is_missing_is_unknown_whatever_its_type(y):
    expected = SERAPH().fit(X, [0, 0, 1, 1, -1, -1]).metric_
    np.testing.assert_array_equal(SERAPH().fit(X, y).metric_, expected)
    assert PairSet.from_labels(X, y).n_labeled == 6


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.array([0, 0, 1, 255, 255, 255], np.uint8), "holds 255 3 times, which is what -1"),
        (["a", "a", "b", "b", "", ""], "y holds '' 2 times, which counts as a class"),
        (np.array(["a", "b", None, "?"], dtype=object), "y holds '\\?' once"),
        (["a", "a", "b", "b", "unbekannt", "Unbekannt"], "y holds 'unbekannt' once"),
        (np.arange(12) / 7.0, "12 different numbers that are not all whole"),
        ([1, -1, 1, 1], "looks like the labels of pairs"),
    ],
)
@pytest.mark.filterwarnings("ignore:The learned metric is zero:UserWarning")
def test_doubtful_labels_are_described(y, words):
    points = np.linspace(0.0, 1.0, len(y))[:, None] ** 2
    with pytest.warns(UserWarning, match=words):
        SERAPH().fit(points, y)


@pytest.mark.parametrize(
    "y",
    [
        [0, 0, 1, -1],
        ["a", "b", "known", None],
        np.array([0.5, 0.5, 1.5, -1.0]),
        np.arange(20.0),
    ],
)
def test_plain_labels_are_not_doubted(y):
    assert describe_labels(y) == ""


def test_labels_beside_constraints_are_not_doubted():
    SERAPH().fit(X, [1, -1, 1, -1, 1, 1], dissimilar=[(1, 3)])  # a warning would be an error

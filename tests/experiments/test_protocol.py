"""Evidence: tasks, samplings and scalings are those of Section 5, its tables typed as printed."""

from __future__ import annotations

import numpy as np
import pytest
from evidence.protocol.printed_table2 import PRINTED
from evidence.protocol.protocol_evidence import expected_sizes, scaling_evidence
from evidence.protocol.samplings import (
    VARIANTS,
    draw_indices,
    draw_sampling,
    load_task,
    nearest_neighbor_error,
    scale_features,
)
from evidence.protocol.tasks import TASKS, UNFILED, find_task, find_tasks
from evidence.results.figures import artificial_set
from evidence.runs.methods import METHODS, PAPER_METHODS, find_methods
from evidence.runs.runner import run_methods
from evidence.runs.single_run import Protocol

from seraph_cvx import PairSet, datasets

IMAGES = [name for name, task in TASKS.items() if task.is_stratified]


# Table 1 and Table 2 as typed


def test_table_1_is_consistent_for_every_task():
    """#S + #D is the number of pairs of labeled points, and #U all other pairs."""
    assert len(TASKS) == 12
    for task in TASKS.values():
        labeled = task.n_labels * (task.n_labels - 1) / 2
        assert task.similar + task.dissimilar == pytest.approx(labeled), task.name
        assert task.unlabeled == task.n_training * (task.n_training - 1) / 2 - labeled, task.name


def test_table_1_of_images_has_the_sizes_of_equally_many_labels_a_class():
    for name in IMAGES:
        task = TASKS[name]
        each = task.n_labels // task.n_classes
        assert task.similar == task.n_classes * each * (each - 1) / 2
        assert len(task.digits) == task.n_classes


def test_table_2_is_typed_as_printed():
    assert len(PRINTED) == 11 * 12 - 5  # GDM has five dashes
    assert PRINTED["EUCLIDEAN", "iris"] == (9.58, 0.73)
    assert PRINTED["NCA", "balance"] == (32.97, 1.31)
    assert PRINTED["MFDA", "diabetes"] == (31.64, 0.62)
    assert PRINTED["LDM", "usps-1-5-20"] == (47.19, 1.51)
    assert PRINTED["SERAPH_post", "mnist-1-7"] == (10.98, 0.79)
    assert PRINTED["SERAPH_hyper", "mnist-3-5-8"] == (35.71, 0.84)
    assert PRINTED["GDM", "usps-1-5-20"] == (37.62, 0.77)
    assert ("GDM", "usps-1-5-40") not in PRINTED


def test_every_row_of_the_paper_has_a_method_and_every_method_a_row():
    rows = {row for row, _ in PRINTED}
    assert [METHODS[name].paper_row for name in PAPER_METHODS] == list(
        dict.fromkeys(row for row, _ in PRINTED)
    )
    assert {method.paper_row for method in METHODS.values()} == rows


# The protocol


@pytest.mark.parametrize("name", UNFILED)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_sampling_of_uci_has_the_sizes_of_table_1_and_no_test_point_in_training(name, variant):
    task = find_task(name)
    _, y = load_task(task)
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(3), variant)
    assert (len(labeled), len(test)) == (task.n_labels, task.n_test)
    assert len(labeled) + len(unlabeled) == task.n_training
    assert len({*labeled, *unlabeled, *test}) == task.n_training + task.n_test
    if "random" not in variant:
        assert set(y[labeled]) == set(y)


@pytest.mark.parametrize("name", UNFILED)
def test_a_sampling_of_uci_shows_two_classes_or_more_and_hides_the_other_labels(name):
    task = find_task(name)
    X, y = load_task(task)
    for seed in range(20):
        sampling = draw_sampling(task, X, y, seed)
        assert 2 <= len(set(sampling.y[: task.n_labels])) <= len(set(y))
        every = draw_sampling(task, X, y, seed, "every-class")
        assert set(every.y[: task.n_labels]) == set(y)
        assert np.all(sampling.y[task.n_labels :] == -1)


@pytest.mark.parametrize("name", IMAGES)
def test_a_sampling_of_images_is_stratified(name, invented_images):
    task = find_task(name)
    X, y = load_task(task)
    assert 0.0 <= X.min() < X.max() <= 1.0
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(0))
    pairs = PairSet.from_labels(X[[*labeled, *unlabeled]], draw_sampling(task, X, y, 5).y)
    sizes = (len(pairs.similar), len(pairs.dissimilar), pairs.n_unlabeled)
    assert sizes == (task.similar, task.dissimilar, task.unlabeled)
    for rows, size in ((labeled, task.n_labels), (test, task.n_test)):
        assert set(np.unique(y[rows], return_counts=True)[1]) == {size // task.n_classes}
    training = y[[*labeled, *unlabeled]]
    each = task.n_training // task.n_classes
    assert set(np.unique(training, return_counts=True)[1]) == {each}
    assert not {*labeled, *unlabeled} & {*test}


def test_data_of_another_width_than_table_1_are_refused(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda *a: (np.ones((150, 5)), np.repeat([0, 1, 2], 50)))
    with pytest.raises(ValueError, match="iris has 5 features where Table 1 has 4"):
        load_task(find_task("iris"))


def test_a_sampling_depends_on_its_seed_alone():
    task = find_task("wine")
    data = load_task(task)
    one, again, other = (draw_sampling(task, *data, seed) for seed in (4, 4, 5))
    assert np.array_equal(one.X, again.X)
    assert np.array_equal(one.y_test, again.y_test)
    assert not np.array_equal(one.X, other.X)


def test_closed_form_of_the_scalings():
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 3))
    X[:, 2] = 7.0
    unit, standard = scale_features(X, "unit"), scale_features(X, "standard")
    assert unit.min(axis=0).tolist() == [0.0, 0.0, 0.0]
    assert unit.max(axis=0).tolist() == [1.0, 1.0, 0.0]
    assert standard.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert standard.std(axis=0) == pytest.approx([1.0, 1.0, 0.0], abs=1e-12)
    assert np.array_equal(scale_features(X, "pixels", is_image=True), X / 255.0)
    assert np.max(np.abs(scale_features(X, "pixels"))) == 1.0
    assert np.array_equal(scale_features(X, "none"), X)


def test_closed_form_of_the_expected_sizes():
    """Plain draws: E#S is #pairs times the chance of equal classes; 20 of each are trimmed."""
    for variant, counts in (("random", [49, 288, 288]), ("trimmed-random", [29, 268, 268])):
        n = sum(counts)
        chance = sum(c * (c - 1) for c in counts) / (n * (n - 1))
        sizes = expected_sizes(find_task("balance"), variant, n_draws=1_000)
        error = sizes.error_of_fifty * np.sqrt(50 / 1_000)
        assert abs(sizes.similar - 45 * chance) < 4 * error, variant
        assert sizes.similar + sizes.dissimilar == 45
    assert expected_sizes(find_task("iris"), "balanced", n_draws=3).similar == 6 + 3 + 3


def test_the_error_is_that_of_the_nearest_labeled_point_alone():
    sampling = draw_sampling(find_task("wine"), *load_task(find_task("wine")), seed=0)
    L = np.random.default_rng(1).normal(size=(5, 13))
    wrong = 0
    for x, c in zip(sampling.X_test, sampling.y_test, strict=True):
        labeled = np.flatnonzero(sampling.labeled)
        nearest = min(labeled, key=lambda i, x=x: np.linalg.norm(L @ (sampling.X[i] - x)))
        wrong += sampling.y[nearest] != c
    assert nearest_neighbor_error(sampling, L) == pytest.approx(100 * wrong / 78)


def test_unknown_words_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="iris, wine"):
        find_task("tulips")
    with pytest.raises(ValueError, match="unit, pixels, standard, none"):
        run_methods(["iris"], ["euclidean"], 1, Protocol(scaling="metric"))
    with pytest.raises(ValueError, match="every-class, random"):
        run_methods(["iris"], ["euclidean"], 1, Protocol(variant="lucky"))
    with pytest.raises(ValueError, match="unit, pixels, standard, none"):
        scale_features(np.eye(2), "metric")
    with pytest.raises(ValueError, match="every-class, random"):
        draw_sampling(find_task("iris"), *load_task(find_task("iris")), 0, "lucky")
    with pytest.raises(ValueError, match="those of Figures 1 and 2"):
        artificial_set(3)
    with pytest.raises(ValueError, match="euclidean, gdm"):
        find_methods(["svm"])
    for name in ("mine=module", "mine=:learn", "gdm=module:learn"):
        with pytest.raises(ValueError, match=f"'{name}': write name=module:function, the name not"):
            find_methods([name])
    with pytest.raises(ValueError, match="No module named 'nowhere'"):
        find_methods(["mine=nowhere:learn"])


@pytest.mark.slow
def test_the_euclidean_row_of_the_images_is_the_papers(data_folder):
    """Pixels in [0, 1], stratified: within three standard errors on all six image tasks."""
    table = scaling_evidence(find_tasks(IMAGES), 50, ["pixels"], data_folder)
    for row in table.rows:
        apart = float(row["pixels"].split("(")[1].split()[0])
        assert abs(apart) < 3.0, row

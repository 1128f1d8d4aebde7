"""Evidence: the explorer's states are the library's, and clicks, links, undo do what they say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from explorer_states import ELABORATE, FEW, after, state_on
from hypothesis import given, settings
from hypothesis import strategies as st

from seraph_cvx import PairSet, alternate, paper
from seraph_cvx.explorer import alternation as walking
from seraph_cvx.explorer.alternation import Settings, StepwiseAlternation, alternation_of
from seraph_cvx.explorer.scene import (
    DRAWN,
    MOST_POINTS,
    SCENES,
    SIDE,
    Scene,
    neighbor_error,
    scene_named,
)
from seraph_cvx.explorer.state import SEEDS, SLIDERS, ExplorerState, link_of, read_link
from seraph_cvx.explorer.views import messages_on, position_of
from seraph_cvx.m_step.statement import soft_label_vector

CORNER = {"x": 350.0, "y": 40.0}  # of the window of FEW, where no point is


def click_on(scene, point, **more):
    x, y = scene.to_screen(scene.X)[point]
    return {"x": x + 3.0, "y": y - 3.0, **more}


# The scenes, and what clicks do to them


@pytest.mark.parametrize("name", [name for name in SCENES if name != DRAWN])
def test_every_scene_comes_to_a_certified_end_and_no_half_step_raises_J(name):
    scene = scene_named(name)
    assert scene.X.shape == (100, 2)
    assert np.bincount(scene.y[scene.y >= 0]).tolist() in ([4, 4], [4, 4, 4])
    assert np.all((scene.to_screen(scene.X) > 0.0) & (scene.to_screen(scene.X) < SIDE))
    end = ExplorerState().choose(name).run()
    assert messages_on(end) == []
    J = np.array([half_step.descent_value for half_step in end.history])
    assert np.all(np.diff(J) <= 1e-9 * np.abs(J[1:]))
    for before, now in pairwise(end.history):
        is_m_step = now.number % 2 == 1
        assert np.array_equal(before.metric, now.metric) is not is_m_step
        assert (before.objective is now.objective) is is_m_step
        assert now.certificate.relative_gap <= 1e-8 or not is_m_step


def test_clicks_and_keys_label_add_choose_and_remove_points():
    scene, seen = FEW, []
    for _ in range(4):
        scene = scene.answer(click_on(FEW, 4))
        seen.append(scene.labels[4])
    assert (seen, scene.chosen, scene.points) == ([0, 1, 2, -1], 4, FEW.points)
    added = FEW.answer(CORNER)
    assert (len(added.points), added.labels[-1], added.chosen) == (8, -1, 7)
    np.testing.assert_allclose(added.to_screen(added.X)[-1], list(CORNER.values()), atol=0.1)
    removed = FEW.answer(click_on(FEW, 2, shift=True))
    assert removed.points == FEW.points[:2] + FEW.points[3:]
    assert removed.labels == FEW.labels[:2] + FEW.labels[3:]
    first = Scene().answer(CORNER)
    assert (len(first.points), first.labels, first.chosen) == (1, (-1,), 0)
    last = FEW.answer({"key": "ArrowLeft"})
    assert (last.chosen, last.answer({"key": "ArrowRight"}).chosen) == (6, 0)
    assert last.answer({"key": "Enter"}).labels[6] == 0
    assert len(last.answer({"key": "Delete"}).points) == 6


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"x": None, "y": 3.0},
        {"x": float("nan"), "y": 3.0},
        {"x": -1.0, "y": 3.0},
        {"x": 401.0, "y": 0.0},
        {"x": "a", "y": []},
        {"key": "q"},
        {"key": None},
        CORNER | {"shift": True},
    ],
)
def test_failure_an_event_that_makes_no_sense_changes_nothing(event):
    assert FEW.answer(event) is FEW
    assert Scene().answer({"key": "Delete"}) == Scene()


def test_failure_a_full_plane_takes_no_more_points_and_says_so():
    points = tuple((float(k % 20) / 10.0, float(k // 20) / 10.0) for k in range(MOST_POINTS))
    full = Scene(points, (0, 1) + (-1,) * (MOST_POINTS - 2))
    assert full.answer({"x": 5.0, "y": 5.0}) is full
    assert any(str(MOST_POINTS) in text for text in messages_on(state_on(full)))


def test_failure_an_unknown_scene_is_named():
    with pytest.raises(ValueError, match="no scene 'spirals'; the known ones are stripes"):
        scene_named("spirals")


# The alternation against the library and the paper


@pytest.mark.parametrize("chosen", [Settings(), ELABORATE], ids=["defaults", "elaborate"])
def test_formulas_agree_J_and_7_with_the_paper_at_every_half_step(chosen):
    state = state_on(FEW, chosen, 6)
    pairs = PairSet.from_labels(FEW.X, FEW.y)
    sets = FEW.X, pairs.similar, pairs.dissimilar, pairs.unlabeled
    mu = chosen.weight_factor * pairs.n_labeled / pairs.n_unlabeled
    letters = {"mu": mu, "lam": chosen.trace_weight, "eta": chosen.threshold}
    assert [half_step.number for half_step in state.history] == list(range(7))
    for half_step in state.history:
        q, A = soft_label_vector(half_step.objective), half_step.metric
        entropy = mu * np.sum(paper.entropy(q)) / (chosen.sharpness or 1.0 + mu)
        J = -paper.m_step(*sets, q, A, **letters) - entropy
        np.testing.assert_allclose(half_step.descent_value, J, rtol=1e-12)
        objective = -paper.simplified_objective(*sets, A, **letters)
        np.testing.assert_allclose(half_step.paper_objective, objective, rtol=1e-12)


def test_run_to_the_end_agrees_with_alternate():
    state = ExplorerState().run()
    run = alternate(PairSet.from_labels(state.scene.X, state.scene.y), tol=1e-6)
    J = state.forward().half_step.descent_value
    np.testing.assert_allclose(J, run.history[-1].descent_value, rtol=1e-5)
    assert abs(len(run.history) - (state.position + 1) // 2) <= 2


def test_a_walk_that_does_not_come_to_rest_ends_at_the_last_step_allowed(monkeypatch):
    monkeypatch.setattr(walking, "MOST_ITERATIONS", 2)
    alternation = StepwiseAlternation(FEW, Settings())
    assert (alternation.end(), alternation.at(3).name) == (3, "M-step 2")


def test_buttons_and_sliders_move_the_state():
    state = after(ExplorerState(), *[{"move": "forward"}] * 3)
    assert position_of(state) == "half-step 3: M-step 2"
    back = after(state, {"move": "back"})
    assert back.half_step is state.history[2]
    assert back.forward().half_step is state.half_step
    assert after(state, {"move": "reset"}, {"move": "back"}).position == 0
    assert set(after(state, {"move": "forget"}).scene.labels) == {-1}
    assert after(state, {"key": "Enter"}, {"move": "restore"}).scene == scene_named("stripes")
    moved = state.with_settings(trace_weight=5.0)
    assert (moved.position, moved.half_step.objective.trace_weight) == (3, 5.0)
    assert state.choose("rings").position == 0


def test_a_walk_is_kept_for_its_points_and_labels_and_two_tabs_may_walk_at_once():
    state = ExplorerState().forward()
    blind = replace(state, scene=replace(state.scene, classes=()))
    for other in (after(state, {"key": "ArrowRight"}), blind):
        assert other.alternation is state.alternation
    assert alternation_of(FEW, Settings()) is alternation_of(FEW, Settings())
    alternation = StepwiseAlternation(FEW, Settings())
    with ThreadPoolExecutor(4) as pool:
        numbers = [half_step.number for half_step in pool.map(alternation.at, [9, 8, 9, 7, 9, 5])]
    assert numbers == [9, 8, 9, 7, 9, 5]
    assert [half_step.number for half_step in alternation.half_steps] == list(range(10))


def test_clicks_that_come_at_once_are_all_answered_and_none_twice():
    events = [{"key": key, "count": k} for k, key in enumerate(("ArrowRight", "Enter", "Enter"), 1)]
    state = state_on(FEW).answer(events[:2])
    assert (state.scene.chosen, state.scene.labels[1], state.heard) == (1, 1, 2)
    third = state.answer(events)
    assert third.scene.labels[1] == 2
    assert third.answer(events[1:2]) == third


# The nearest labeled point


def test_the_1_nn_error_is_that_of_double_loops_over_points_without_a_label():
    state = ExplorerState(position=3)
    scene = state.scene
    known = [k for k in range(100) if scene.labels[k] >= 0]
    sides = (np.eye(2), state.error_before), (state.half_step.metric, state.error_after)
    for metric, error in sides:
        wrong = []
        for k in set(range(100)) - set(known):
            v = [scene.X[k] - scene.X[j] for j in known]
            nearest = known[int(np.argmin([d @ metric @ d for d in v]))]
            if scene.labels[nearest] != scene.classes[k]:
                wrong.append(k)
        assert (error.wrong, error.n_judged) == (tuple(sorted(wrong)), 88)
        assert error.share == len(wrong) / 88


def test_no_error_is_claimed_where_no_point_can_be_judged():
    scene = scene_named("stripes")
    assert neighbor_error(scene, np.zeros((2, 2))) is None
    assert neighbor_error(scene.unlabeled(), np.eye(2)) is None
    assert neighbor_error(FEW, np.eye(2)) is None  # nobody knows the class of a drawn point
    assert neighbor_error(scene.answer({"x": 399.0, "y": 1.0}), np.eye(2)).n_judged == 88


def test_a_removed_point_takes_its_true_class_along():
    scene = scene_named("rings").without(5).answer({"x": 1.0, "y": 1.0}).without(7)
    expected = np.delete(scene_named("rings").classes, [5, 8])
    np.testing.assert_array_equal(scene.truth, [*expected, -1])


# Undo, results and links


def test_undo_takes_back_every_change_of_points_and_labels_and_no_slider():
    states = [ExplorerState()]
    events = [{"x": 20.0, "y": 30.0}, {"key": "Enter"}, {"key": "Delete"}, {"move": "forget"}]
    events += [{"set": "source", "value": "rings"}, {"set": "seed", "value": 4}]
    for event in events:
        states.append(after(states[-1], event))
        assert states[-1].scene != states[-2].scene
    # choosing a point is not undone
    state = after(states[-1], {"set": "threshold", "value": 0}, {"key": "ArrowRight"})
    for before in reversed(states[:-1]):
        state = after(state, {"move": "undo"})
        assert (state.source, state.seed, state.scene) == (before.source, before.seed, before.scene)
    assert state.settings.threshold == SLIDERS["threshold"].stops[0]
    assert after(state, {"move": "undo"}).scene == state.scene


def test_results_stay_when_the_scene_changes_and_show_their_scene_again():
    run = {"move": "run"}
    first = after(ExplorerState(), run)
    rings = {"set": "source", "value": "rings"}
    second = after(first, rings, {"x": 5.0, "y": 5.0}, run, {"move": "forget"}, run)
    cells, other = (row.cells for row in second.results)
    assert (cells["data"], other["data"]) == ("stripes, seed 0", "rings, seed 0, 1 added")
    assert cells["1-NN error before"] == str(first.error_before)
    assert cells["after"] == str(first.error_after)
    assert float(cells["certified gap"]) <= 1e-8
    assert float(cells["J"]) == pytest.approx(first.half_step.descent_value, rel=1e-5)
    assert int(cells["rank"]) == np.linalg.matrix_rank(first.half_step.metric, 1e-6)
    assert after(first, run).results == after(first, {"key": "ArrowRight"}, run).results
    assert after(first, run).results == first.results
    again = after(second, {"show": "0"})
    assert again.scene.points == first.scene.points
    assert np.array_equal(again.half_step.metric, first.half_step.metric)
    assert after(again, {"show": "7"}).snapshot == again.snapshot
    assert after(again, {"move": "clear"}).results == ()


@settings(max_examples=40)
@given(
    st.sampled_from(SCENES),
    st.sampled_from(SEEDS[:2]),
    st.lists(st.tuples(st.floats(0, 400), st.floats(0, 400), st.booleans()), max_size=12),
    st.tuples(*(st.sampled_from(slider.stops) for slider in SLIDERS.values())),
    st.booleans(),
)
def test_property_every_scene_comes_back_from_its_link(name, seed, clicks, values, is_paper):
    chosen = Settings(**dict(zip(SLIDERS, values, strict=True)), paper_sharpness=is_paper)
    state = replace(ExplorerState().choose(name, seed), settings=chosen)
    state = after(state, *({"x": x, "y": y, "shift": shift} for x, y, shift in clicks))
    assert read_link(link_of(state)) == state.snapshot


def test_a_link_of_the_past_is_read_and_written_as_it_was():
    link = "data=stripes&seed=0&mu=1.0&lambda=0.5&eta=1.0&a=2.0&sharpness=paper&step=3&point=1"
    link += "&removed=2,7&added=0.5,1.25&labels=" + "01" * 4 + "." * 91
    assert link_of(read_link(f"http://127.0.0.1:2718/#{link}")) == link


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ("", "The link has the parts []"),
        ("data=stripes&rank=1", "the parts ['data', 'rank']; it may have data, seed"),
        ("data=spirals", "data is 'spirals', which is no stop from stripes to draw your own"),
        ("lambda=0.31", "lambda is '0.31', which is no stop from 0.0 to 100.0"),
        ("mu=many", "mu is 'many'"),
        ("seed=-1", "seed is '-1', which is no stop from 0 to 19"),
        ("step=100000", "step is '100000'"),
        ("sharpness=blunt", "sharpness is 'blunt', which is no stop from paper to own"),
        ("removed=100", "removed is '100'"),
        ("point=100", "point is '100'"),
        ("added=1", "adds the point '1', not two numbers"),
        ("added=nan,1", "adds the point 'nan,1'"),
        ("added=" + ";".join(["1,1"] * 101), "has 201 points and 201 labels"),
        ("labels=01", "has 100 points and 2 labels"),
    ],
)
def test_failure_a_link_that_makes_no_sense_is_answered_in_words(link, message):
    with pytest.raises(ValueError, match="The link"):
        read_link(link)
    state = after(ExplorerState(), {"link": link})
    assert message in state.message
    assert state.snapshot == ExplorerState().snapshot
    assert after(state, {"key": "x"}).message == ""


@pytest.mark.parametrize(
    "event",
    [
        {"set": "source", "value": "spirals"},
        {"set": "source", "value": ["rings"]},
        {"set": "seed", "value": 20},
        {"set": "trace_weight", "value": -1},
        {"set": "trace_weight", "value": 0.5},
        {"set": "trace_weight", "value": True},
        {"set": "paper_sharpness", "value": 1},
        {"set": "position", "value": 3},
        {"set": "trace_weight"},
        {"set": ["seed"], "value": 1},
        {"move": "jump"},
        {"move": {}},
        {"show": "first"},
    ],
)
def test_failure_a_control_set_to_nonsense_changes_nothing(event):
    assert after(ExplorerState(), event).snapshot == ExplorerState().snapshot


# The controls that do nothing


@pytest.mark.parametrize("name", [*SLIDERS, "paper_sharpness"])
@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(paper_sharpness=False), Settings(0.0, paper_sharpness=False)],
    ids=["paper", "own", "no weight"],
)
def test_a_control_is_off_exactly_when_it_changes_no_metric(name, settings):
    state = state_on(FEW, settings, 3)
    value = not settings.paper_sharpness if name == "paper_sharpness" else 7
    other = after(state, {"set": name, "value": value})
    changes = not np.array_equal(other.half_step.metric, state.half_step.metric)
    assert (state.why_off(name) == "") is changes


def test_controls_are_off_where_every_pair_is_labeled_or_the_points_are_drawn():
    labeled = state_on(replace(FEW, labels=(0, 0, 1, 1, 0, 1, 1)))
    off = {name: labeled.why_off(name) for name in ("weight_factor", "own_sharpness", "seed")}
    assert ["unlabeled" in reason for reason in off.values()] == [True, True, False]
    assert "yourself" in off["seed"]
    assert ExplorerState().why_off("seed") == ""
    assert [labeled.why_off(name) for name in ("source", "trace_weight", "threshold")] == [""] * 3

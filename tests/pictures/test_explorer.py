"""Evidence: the explorer's states are the library's, and clicks, links, undo do what they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pytest
from explorer_states import ELABORATE, FEW, state_on, told
from hypothesis import given, settings
from hypothesis import strategies as st

from seraph_cvx import PairSet, alternate
from seraph_cvx.explorer import stepwise_alternation as walk_room
from seraph_cvx.explorer.link import link_of, read_link
from seraph_cvx.explorer.neighbors import neighbor_error
from seraph_cvx.explorer.point_sets import DRAWN, SCENES, scene_named
from seraph_cvx.explorer.results import COLUMNS
from seraph_cvx.explorer.scene import MOST_POINTS, SIDE, Scene
from seraph_cvx.explorer.sliders import SEEDS, SLIDERS, why_off
from seraph_cvx.explorer.state import ExplorerState
from seraph_cvx.explorer.stepwise_alternation import (
    Settings,
    StepwiseAlternation,
    alternation_of,
)
from seraph_cvx.explorer.views.messages import position_of, words_on
from seraph_cvx.m_step.statement import soft_label_vector

NAMED = [name for name in SCENES if name != DRAWN]


def pressed(state, key):
    return told(state, {"key": key})


# The scenes, and what clicks do to them


@pytest.mark.parametrize("name", NAMED)
def test_every_scene_is_of_100_points_and_comes_to_a_certified_end(name):
    scene = scene_named(name)
    known = scene.y[scene.y >= 0]
    assert scene.X.shape == (100, 2)
    assert np.bincount(known).tolist() in ([4, 4], [4, 4, 4])
    assert np.all((scene.to_screen(scene.X) > 0.0) & (scene.to_screen(scene.X) < SIDE))
    end = ExplorerState().choose(name).run()
    assert end.half_step.certificate.relative_gap <= 1e-8
    assert words_on(end) == []


def test_a_click_on_a_point_moves_its_label_in_a_circle():
    x, y = FEW.to_screen(FEW.X)[4]
    scene, seen = FEW, []
    for _ in range(4):
        scene = scene.answer({"x": x + 3.0, "y": y - 3.0, "count": 1})
        seen.append(scene.labels[4])
    assert seen == [0, 1, 2, -1]
    assert scene.chosen == 4
    assert scene.points == FEW.points


def test_a_click_on_the_plane_adds_an_unknown_point_there():
    scene = FEW.answer({"x": 350.0, "y": 40.0, "shift": False})
    assert len(scene.points) == 8
    assert scene.labels[-1] == -1
    assert scene.chosen == 7
    np.testing.assert_allclose(scene.to_screen(scene.X)[-1], [350.0, 40.0], atol=0.1)


def test_the_first_click_on_an_empty_plane_adds_its_first_point():
    scene = Scene().answer({"x": 200.0, "y": 100.0})
    assert (len(scene.points), scene.labels, scene.chosen) == (1, (-1,), 0)
    assert Scene().answer({"x": 200.0, "y": 100.0, "shift": True}) == Scene()


def test_shift_removes_a_point_and_adds_none():
    x, y = FEW.to_screen(FEW.X)[2]
    scene = FEW.answer({"x": x, "y": y, "shift": True})
    assert scene.points == FEW.points[:2] + FEW.points[3:]
    assert scene.labels == FEW.labels[:2] + FEW.labels[3:]
    assert FEW.answer({"x": 350.0, "y": 40.0, "shift": True}) is FEW


def test_keys_choose_label_and_remove():
    scene = FEW.answer({"key": "ArrowLeft"})
    assert scene.chosen == 6
    assert scene.answer({"key": "Enter"}).labels[6] == 0
    assert len(scene.answer({"key": "Delete"}).points) == 6
    assert scene.answer({"key": "ArrowRight"}).chosen == 0


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"x": None, "y": 3.0},
        {"x": float("nan"), "y": 3.0},
        {"x": -1.0, "y": 3.0},
        {"x": "a", "y": []},
        {"key": "q"},
        {"key": None},
        {"x": 401.0, "y": 0.0},
    ],
)
def test_failure_an_event_that_makes_no_sense_changes_nothing(event):
    assert FEW.answer(event) is FEW
    assert Scene().answer({"key": "Delete"}) == Scene()


def test_failure_a_full_plane_takes_no_more_points_and_says_so():
    points = tuple((float(k % 20) / 10.0, float(k // 20) / 10.0) for k in range(MOST_POINTS))
    full = Scene(points, (0, 1) + (-1,) * (MOST_POINTS - 2))
    assert full.answer({"x": 5.0, "y": 5.0}) is full
    assert any(str(MOST_POINTS) in text for text in words_on(state_on(full)))


def test_failure_an_unknown_scene_is_named():
    with pytest.raises(ValueError, match="no scene 'spirals'; the known ones are stripes"):
        scene_named("spirals")


# The alternation against the library and against double loops


@pytest.mark.parametrize("chosen", [Settings(), ELABORATE], ids=["defaults", "elaborate"])
def test_formulas_agree_J_and_7_with_double_loops_at_every_half_step(chosen):
    state = state_on(FEW, chosen, 6)
    pairs = PairSet.from_labels(FEW.X, FEW.y)
    mu = chosen.weight_factor * pairs.n_labeled / pairs.n_unlabeled
    a = 1.0 + mu if chosen.paper_sharpness else chosen.own_sharpness
    numbers = (chosen.trace_weight, chosen.threshold)
    assert [half_step.number for half_step in state.history] == list(range(7))
    for half_step in state.history:
        q = soft_label_vector(half_step.objective)
        J = naive.descent(pairs, q, mu, a, *numbers, half_step.metric)
        paper = naive.semi_supervised(pairs, mu, *numbers, half_step.metric)[0]
        np.testing.assert_allclose(half_step.descent_value, J, rtol=1e-12)
        np.testing.assert_allclose(half_step.paper_objective, paper, rtol=1e-12)


@pytest.mark.parametrize("name", NAMED)
def test_no_half_step_raises_J_and_each_does_its_work(name):
    history = ExplorerState().choose(name).run().history
    J = np.array([half_step.descent_value for half_step in history])
    assert np.all(np.diff(J) <= 1e-9 * np.abs(J[1:]))
    for before, after in pairwise(history):
        is_m_step = after.number % 2 == 1
        assert np.array_equal(before.metric, after.metric) is not is_m_step
        assert (before.objective is after.objective) is is_m_step
        if is_m_step:
            assert after.certificate.relative_gap <= 1e-8


def test_run_to_the_end_agrees_with_alternate():
    state = ExplorerState().choose("stripes").run()
    scene = state.scene
    run = alternate(PairSet.from_labels(scene.X, scene.y), tol=1e-6)
    assert state.half_step.name == f"M-step {(state.position + 1) // 2}"
    np.testing.assert_allclose(
        state.forward().half_step.descent_value, run.history[-1].descent_value, rtol=1e-5
    )
    assert abs(len(run.history) - (state.position + 1) // 2) <= 2


def test_a_walk_that_does_not_come_to_rest_ends_at_the_last_step_allowed(monkeypatch):
    monkeypatch.setattr(walk_room, "MOST_ITERATIONS", 2)
    alternation = StepwiseAlternation(FEW, Settings())
    assert alternation.end() == 3
    assert alternation.at(3).name == "M-step 2"


def test_position_forward_back_reset_and_sliders():
    state = ExplorerState().forward().forward().forward()
    assert position_of(state) == "half-step 3: M-step 2"
    assert state.back().half_step is state.history[2]
    assert state.back().forward().half_step is state.half_step
    assert state.reset().back().position == 0
    moved = state.with_settings(trace_weight=5.0)
    assert moved.position == 3
    assert moved.half_step.objective.trace_weight == 5.0
    assert state.choose("rings").position == 0
    assert pressed(state, "Enter").restore().scene == scene_named("stripes")


def test_the_chosen_point_and_the_true_classes_change_pictures_and_not_the_walk():
    state = ExplorerState().forward()
    other = pressed(state, "ArrowRight")
    assert other.alternation is state.alternation
    blind = replace(state, scene=replace(state.scene, classes=()))
    assert blind.alternation is state.alternation


def test_clicks_that_come_at_once_are_all_answered_and_none_twice():
    first, second = {"key": "ArrowRight", "count": 1}, {"key": "Enter", "count": 2}
    state = state_on(FEW).answer([first, second])
    assert (state.scene.chosen, state.scene.labels[1], state.heard) == (1, 1, 2)
    third = state.answer([first, second, {"key": "Enter", "count": 3}])
    assert third.scene.labels[1] == 2
    assert third.answer([second]) == third


def test_buttons_move_the_state():
    state = ExplorerState()
    stepped = state.answer([{"move": "forward", "count": count} for count in (1, 2, 3)])
    assert position_of(stepped) == "half-step 3: M-step 2"
    assert told(stepped, {"move": "back"}).position == 2
    assert told(stepped, {"move": "reset"}).position == 0
    assert told(stepped, {"move": "jump"}).half_step is stepped.half_step
    assert set(told(stepped, {"move": "forget"}).scene.labels) == {-1}


def test_two_tabs_may_walk_at_once():
    from concurrent.futures import ThreadPoolExecutor

    alternation = StepwiseAlternation(FEW, Settings())
    with ThreadPoolExecutor(4) as pool:
        numbers = [half_step.number for half_step in pool.map(alternation.at, [9, 8, 9, 7, 9, 5])]
    assert numbers == [9, 8, 9, 7, 9, 5]
    assert [half_step.number for half_step in alternation.half_steps] == list(range(10))


def test_walks_are_kept():
    assert alternation_of(FEW, Settings()) is alternation_of(FEW, Settings())


# The nearest labeled point


def test_the_1_nn_error_is_that_of_double_loops_over_points_without_a_label():
    state = ExplorerState(position=3)
    scene, A = state.scene, state.half_step.metric
    known = [k for k in range(100) if scene.labels[k] >= 0]
    for metric, found in ((np.eye(2), state.error_before), (A, state.error_after)):
        wrong = []
        for k in set(range(100)) - set(known):
            v = [scene.X[k] - scene.X[j] for j in known]
            nearest = known[int(np.argmin([d @ metric @ d for d in v]))]
            if scene.labels[nearest] != scene.classes[k]:
                wrong.append(k)
        assert found.wrong == tuple(sorted(wrong))
        assert found.n_judged == 88
        assert found.share == len(wrong) / 88


def test_no_error_is_claimed_where_no_point_can_be_judged():
    scene = scene_named("stripes")
    assert neighbor_error(scene, np.zeros((2, 2))) is None
    assert neighbor_error(scene.unlabeled(), np.eye(2)) is None
    assert neighbor_error(FEW, np.eye(2)) is None  # nobody knows the class of a drawn point
    added = scene.answer({"x": 399.0, "y": 1.0})
    assert neighbor_error(added, np.eye(2)).n_judged == 88


@pytest.mark.parametrize("name", ["stripes", "rings"])
def test_a_removed_point_takes_its_true_class_along(name):
    scene = scene_named(name).without(5).answer({"x": 1.0, "y": 1.0}).without(7)
    expected = np.delete(scene_named(name).classes, [5, 8])
    np.testing.assert_array_equal(scene.truth, [*expected, -1])


# Undo, results and links


def test_undo_takes_back_every_change_of_points_and_labels_and_no_slider():
    states = [ExplorerState()]
    events = [{"x": 20.0, "y": 30.0}, {"key": "Enter"}, {"key": "Delete"}, {"move": "forget"}]
    events += [{"set": "source", "value": "rings"}, {"set": "seed", "value": 4}]
    for event in events:
        states.append(told(states[-1], event))
        assert states[-1].scene != states[-2].scene
    state = told(states[-1], {"set": "threshold", "value": 0})
    state = told(state, {"key": "ArrowRight"})  # choosing a point is not undone
    for before in reversed(states[:-1]):
        state = told(state, {"move": "undo"})
        assert (state.source, state.seed, state.scene) == (before.source, before.seed, before.scene)
    assert state.settings.threshold == SLIDERS["threshold"].stops[0]
    assert told(state, {"move": "undo"}).scene == state.scene


def test_results_stay_when_the_scene_changes_and_show_their_scene_again():
    first = told(ExplorerState(), {"move": "run"})
    other = told(told(first, {"set": "source", "value": "rings"}), {"x": 5.0, "y": 5.0})
    second = told(told(told(other, {"move": "run"}), {"move": "forget"}), {"move": "run"})
    first_row, second_row = (dict(zip(COLUMNS, row.cells, strict=True)) for row in second.results)
    assert second_row["data"] == "rings, seed 0, 1 added"
    assert first_row["data"] == "stripes, seed 0"
    assert first_row["1-NN error before"] == str(first.error_before)
    assert first_row["after"] == str(first.error_after)
    assert float(first_row["certified gap"]) <= 1e-8
    assert float(first_row["J"]) == pytest.approx(first.half_step.descent_value, rel=1e-5)
    assert int(first_row["rank"]) == np.linalg.matrix_rank(first.half_step.metric, 1e-6)
    assert told(first, {"move": "run"}).results == first.results
    assert told(pressed(first, "ArrowRight"), {"move": "run"}).results == first.results
    again = told(second, {"show": "0"})
    assert again.scene.points == first.scene.points
    assert np.array_equal(again.half_step.metric, first.half_step.metric)
    assert told(again, {"show": "7"}).snapshot == again.snapshot
    assert told(again, {"move": "clear"}).results == ()


@settings(max_examples=40)
@given(
    st.sampled_from(list(SCENES)),
    st.sampled_from(SEEDS[:2]),
    st.lists(st.tuples(st.floats(0, 400), st.floats(0, 400), st.booleans()), max_size=12),
    st.tuples(*(st.sampled_from(slider.stops) for slider in SLIDERS.values())),
    st.booleans(),
)
def test_property_every_scene_comes_back_from_its_link(name, seed, clicks, values, paper):
    chosen = Settings(**dict(zip(SLIDERS, values, strict=True)), paper_sharpness=paper)
    state = replace(ExplorerState().choose(name, seed), settings=chosen)
    for x, y, shift in clicks:
        state = told(state, {"x": x, "y": y, "shift": shift})
    assert read_link(link_of(state)) == state.snapshot


@pytest.mark.parametrize(
    ("link", "words"),
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
def test_failure_a_link_that_makes_no_sense_is_answered_in_words(link, words):
    with pytest.raises(ValueError, match="The link"):
        read_link(link)
    state = told(ExplorerState(), {"link": link})
    assert words in state.words
    assert state.snapshot == ExplorerState().snapshot
    assert told(state, {"key": "x"}).words == ""


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
        {"move": "jump"},
        {"show": "first"},
    ],
)
def test_failure_a_control_set_to_nonsense_changes_nothing(event):
    assert told(ExplorerState(), event).snapshot == ExplorerState().snapshot


# The controls that do nothing


@pytest.mark.parametrize("name", [*SLIDERS, "paper_sharpness"])
@pytest.mark.parametrize(
    "settings",
    [Settings(), Settings(paper_sharpness=False), Settings(0.0, paper_sharpness=False)],
    ids=["paper", "own", "no weight"],
)
def test_a_control_is_off_exactly_when_it_changes_no_metric(name, settings):
    state = state_on(FEW, settings, 3)
    if name == "paper_sharpness":
        other = state.with_settings(paper_sharpness=not settings.paper_sharpness)
    else:
        other = told(state, {"set": name, "value": 7})
    changes = not np.array_equal(other.half_step.metric, state.half_step.metric)
    assert (why_off(state, name) == "") is changes


def test_controls_are_off_where_every_pair_is_labeled_or_the_points_are_drawn():
    labeled = state_on(replace(FEW, labels=(0, 0, 1, 1, 0, 1, 1)))
    assert "no pair is unlabeled" in why_off(labeled, "weight_factor")
    assert "no pair is unlabeled" in why_off(labeled, "own_sharpness")
    assert "yourself" in why_off(labeled, "seed")
    assert why_off(ExplorerState(), "seed") == ""
    for name in ("source", "trace_weight", "threshold"):
        assert why_off(labeled, name) == ""

"""Evidence: the explorer's states and pictures are the library's; it answers nonsense in words."""

from __future__ import annotations

import base64
import io
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from explorer_states import ELABORATE, FEW, POSITIONS, after, scene_of, state_on, well_formed
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from seraph_cvx import PairSet, Status, alternate, certify, paper
from seraph_cvx.display.formulas import typeset
from seraph_cvx.explorer import alternation as walking
from seraph_cvx.explorer import views
from seraph_cvx.explorer.alternation import (
    SOLVERS,
    Settings,
    StepwiseAlternation,
    ask_solver,
    gaps_by_iteration,
)
from seraph_cvx.explorer.pictures import TINTS, ellipse, pair_heat, plane_heat
from seraph_cvx.explorer.scene import (
    DRAWN,
    MOST_POINTS,
    SCENES,
    SIDE,
    Scene,
    neighbor_error,
    scene_named,
)
from seraph_cvx.explorer.state import CONTROLS, MOVES, ExplorerState, link_of, read_link
from seraph_cvx.explorer.views import controls_of, messages_on, panels_of, sheet
from seraph_cvx.m_step.statement import soft_label_vector
from seraph_cvx.numerics.psd_cone import symmetric_root

CORNER = {"x": 350.0, "y": 40.0}  # of the window of FEW, where no point is
RUN, UNDO, FORWARD, RIGHT = (
    {"move": "run"},
    {"move": "undo"},
    {"move": "forward"},
    {"key": "ArrowRight"},
)


def click_on(scene, point, **more):
    x, y = scene.to_screen(scene.X)[point]
    return {"x": x + 3.0, "y": y - 3.0, **more}


def section(state, name):
    """A panel of the page."""
    return well_formed(panels_of(state)).find(f"section[@class='{name}']")


def text_of(html):
    return "".join(well_formed(html).itertext())


def values_in(element):
    return {cell.get("data-value"): "".join(cell.itertext()) for cell in element.iter()}


def marks_in(element):
    return [(mark.tag, mark.get("class")) for mark in element.iter()]


def pixels_in(element):
    """The picture within, by another library than the one that wrote it."""
    encoded = next(element.iter("image")).get("href").partition("base64,")[2]
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        return np.asarray(picture)


# The scenes, and what clicks do to them


@pytest.mark.parametrize("name", [name for name in SCENES if name != DRAWN])
def test_every_scene_comes_to_a_certified_end_and_no_half_step_raises_J(name):
    scene = scene_named(name)
    assert scene.X.shape == (100, 2)
    assert np.bincount(scene.y[scene.y >= 0]).tolist() in ([4, 4], [4, 4, 4])
    assert np.all((scene.to_screen(scene.X) > 0.0) & (scene.to_screen(scene.X) < SIDE))
    end = ExplorerState().adjusted(source=name).run()
    assert messages_on(end) == []
    J = np.array([half_step.descent_value for half_step in end.history])
    assert np.all(np.diff(J) <= 1e-9 * np.abs(J[1:]))
    for before, now in pairwise(end.history):
        if now.number % 2:
            assert before.objective is now.objective
            assert now.certificate.relative_gap <= 1e-8
        else:
            assert before.metric is now.metric
            assert before.objective is not now.objective


def test_clicks_and_keys_label_add_choose_and_remove_points():
    scene, seen = FEW, []
    for _ in range(4):
        scene = scene.answer(click_on(FEW, 4))
        seen.append(scene.y[4])
    assert (seen, scene) == ([0, 1, 2, -1], replace(FEW, chosen=4))
    for before in (FEW, Scene()):
        n, added = len(before.points), before.answer(CORNER)
        assert (len(added.points), added.y[-1], added.chosen) == (n + 1, -1, n)
        np.testing.assert_allclose(added.to_screen(added.X)[-1], list(CORNER.values()), atol=0.1)
    removed = FEW.answer(click_on(FEW, 2, shift=True))
    assert removed.points == FEW.points[:2] + FEW.points[3:]
    last = FEW.answer({"key": "ArrowLeft"})
    assert (last.chosen, last.answer(RIGHT).chosen) == (6, 0)
    assert last.answer({"key": "Enter"}).y[6] == 0
    assert last.answer({"key": "Delete"}).points == FEW.points[:6]


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
        {"set": "source", "value": "spirals"},
        {"set": "source", "value": ["rings"]},
        {"set": "seed", "value": 20},
        {"set": "trace_weight", "value": -1},
        {"set": "trace_weight", "value": 0.5},
        {"set": "trace_weight", "value": True},
        {"set": "sharpness_rule", "value": 1},
        {"set": "position", "value": 3},
        {"set": "trace_weight"},
        {"set": ["seed"], "value": 1},
        {"move": "jump"},
        {"move": {}},
        {"show": "first"},
    ],
)
def test_failure_an_event_that_makes_no_sense_changes_nothing(event):
    for state in (state_on(FEW), state_on(Scene())):
        if state.scene.points or "x" not in event:
            assert after(state, event).snapshot == state.snapshot


def test_clicks_that_come_at_once_are_all_answered_and_none_twice():
    events = [{"key": "ArrowRight", "count": 1}, *({"key": "Enter", "count": k} for k in (2, 3))]
    state = state_on(FEW).answer(events[:2]).answer(events)
    assert (state.scene.chosen, state.scene.y[1], state.heard) == (1, 2, 3)
    assert state.answer(events) == state


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
        objective = -paper.simplified_objective(*sets, A, **letters)
        found = half_step.descent_value, half_step.paper_objective
        np.testing.assert_allclose(found, (J, objective), rtol=1e-12)


def test_run_to_the_end_agrees_with_alternate_and_the_first_scene_is_a_success():
    state = ExplorerState().run()
    before, now = (len(error.wrong) / error.n_judged for error in state.errors)
    assert now < 0.02 < 0.15 < before
    pairs = PairSet.from_labels(state.scene.X, state.scene.y)
    run = alternate(pairs, tol=1e-6, accelerate=False)
    J = state.forward().half_step.descent_value
    np.testing.assert_allclose(J, run.history[-1].descent_value, rtol=1e-5)
    assert abs(len(run.history) - (state.position + 1) // 2) <= 2


def test_a_walk_that_does_not_come_to_rest_ends_at_the_last_step_allowed(monkeypatch):
    monkeypatch.setattr(walking, "MOST_ITERATIONS", 2)
    alternation = StepwiseAlternation(FEW, Settings())
    assert (alternation.end(), alternation.at(3).name) == (3, "M-step 2")


def test_buttons_and_sliders_move_the_state():
    state = after(ExplorerState(), *[FORWARD] * 3)
    assert values_in(section(state, "status"))["position"] == "half-step 3: M-step 2"
    back = after(state, {"move": "back"})
    assert back.half_step is state.history[2]
    assert back.forward().half_step is state.half_step
    assert after(state, {"move": "reset"}, {"move": "back"}).position == 0
    assert after(state, {"move": "forget"}, {"move": "restore"}).scene == scene_named("stripes")
    moved = state.adjusted(trace_weight=5.0)
    assert (moved.position, moved.half_step.objective.trace_weight) == (3, 5.0)
    assert state.adjusted(source="rings").position == 0


def test_a_walk_is_kept_whatever_point_is_chosen_and_two_tabs_may_walk_at_once():
    state = ExplorerState().forward()
    assert after(state, RIGHT).alternation is state.alternation
    alternation = StepwiseAlternation(FEW, Settings())
    with ThreadPoolExecutor(4) as pool:
        numbers = [half_step.number for half_step in pool.map(alternation.at, [9, 8, 9, 7, 9, 5])]
    assert numbers == [9, 8, 9, 7, 9, 5]
    assert [half_step.number for half_step in alternation.half_steps] == list(range(10))


# The nearest labeled point


def nearest_label(scene, A, places):
    """By the differences of all places and labeled points."""
    known = scene.y >= 0
    v = places[:, None] - scene.X[known]
    return scene.y[known][np.argmin(np.einsum("ijk,kl,ijl->ij", v, A, v), axis=1)]


def test_the_1_nn_error_is_that_of_all_points_without_a_label():
    state = ExplorerState(position=3)
    scene = state.scene
    for metric, error in zip((np.eye(2), state.half_step.metric), state.errors, strict=True):
        is_wrong = (nearest_label(scene, metric, scene.X) != scene.truth) & (scene.y < 0)
        assert error == (tuple(np.flatnonzero(is_wrong)), 88)
    assert neighbor_error(scene, np.zeros((2, 2))) is None
    assert neighbor_error(scene.unlabeled(), np.eye(2)) is None
    assert neighbor_error(FEW, np.eye(2)) is None  # nobody knows the class of a drawn point
    assert neighbor_error(scene.answer({"x": 399.0, "y": 1.0}), np.eye(2)).n_judged == 88


def test_regions_and_crosses_are_those_of_the_nearest_labeled_point():
    state = ExplorerState(position=1)
    drawn, scene = section(state, "after"), state.scene
    assert marks_in(drawn).count(("path", "wrong")) == len(state.errors[1].wrong)
    rows, columns = np.array([3, 50, 97]), np.array([3, 20, 60])
    places = scene.to_plane((np.stack([columns, rows], axis=1) + 0.5) * SIDE / 100)
    expected = np.array(TINTS)[nearest_label(scene, state.half_step.metric, places)]
    np.testing.assert_array_equal(pixels_in(drawn)[rows, columns, :3], expected)


# Undo, results and links


def test_undo_takes_back_every_change_of_points_and_labels_and_no_slider():
    states = [ExplorerState()]
    events = [{"x": 20.0, "y": 30.0}, {"key": "Enter"}, {"key": "Delete"}, {"move": "forget"}]
    events += [{"set": "source", "value": "rings"}, {"set": "seed", "value": 4}]
    for event in events:
        states.append(after(states[-1], event))
        assert states[-1].scene != states[-2].scene
    state = after(states[-1], {"set": "threshold", "value": 0}, RIGHT)  # which is not undone
    for before in reversed(states[:-1]):
        state = after(state, UNDO)
        assert state.scene == before.scene
        assert state.settings == replace(before.settings, threshold=0.1)
    assert after(state, UNDO).scene == state.scene


def results_of(state):
    """The rows of the table of results, the oldest first."""
    names, *rows = [[cell.text for cell in row] for row in section(state, "results").iter("tr")]
    return [dict(zip(names, row, strict=True)) for row in reversed(rows)]


def test_results_stay_when_the_scene_changes_and_show_their_scene_again():
    first = after(ExplorerState(), RUN)
    rings = {"set": "source", "value": "rings"}
    second = after(first, rings, {"x": 5.0, "y": 5.0}, RUN, {"move": "forget"}, RUN)
    cells, other = results_of(second)
    assert (cells["data"], other["data"]) == ("stripes, seed 0", "rings, seed 0, 1 added")
    assert (cells["1-NN error before"], cells["after"]) == tuple(map(str, first.errors))
    assert float(cells["certified gap"]) <= 1e-8
    assert float(cells["J"]) == pytest.approx(first.half_step.descent_value, rel=1e-5)
    assert int(cells["rank"]) == np.linalg.matrix_rank(first.half_step.metric, 1e-6)
    assert after(first, RUN).results == after(first, RIGHT, RUN).results == first.results
    again = after(second, {"show": "0"})
    assert again.scene.points == first.scene.points
    assert np.array_equal(again.half_step.metric, first.half_step.metric)
    assert after(again, {"show": "7"}).snapshot == again.snapshot
    assert after(again, {"move": "clear"}).results == ()


@settings(max_examples=40)
@given(
    st.fixed_dictionaries({name: st.sampled_from(c.options) for name, c in CONTROLS.items()}),
    st.lists(st.tuples(st.floats(0, 400), st.floats(0, 400), st.booleans()), max_size=12),
)
def test_property_every_scene_comes_back_from_its_link(controls, clicks):
    state = ExplorerState().adjusted(**controls)
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
    state = after(ExplorerState(), {"link": link})
    assert message in state.message
    assert state.snapshot == ExplorerState().snapshot
    assert after(state, {"key": "x"}).message == ""


# The controls


OWN = Settings(sharpness_rule="own")


@pytest.mark.parametrize("name", [name for name in CONTROLS if name not in ("source", "seed")])
@pytest.mark.parametrize("chosen", [Settings(), OWN, replace(OWN, weight_factor=0.0)])
def test_a_control_is_off_exactly_when_it_changes_no_metric(name, chosen):
    state = state_on(FEW, chosen, 3)
    value = chosen.sharpness is not None if name == "sharpness_rule" else 7
    other = after(state, {"set": name, "value": value})
    changes = not np.array_equal(other.half_step.metric, state.half_step.metric)
    assert (state.why_off(name) == "") is changes


def test_controls_are_off_where_every_pair_is_labeled_or_the_points_are_drawn():
    labeled = state_on(scene_of(POSITIONS, (0, 0, 1, 1, 0, 1, 1)))
    reasons = {name: labeled.why_off(name) for name in CONTROLS}
    off = {name for name, reason in reasons.items() if "unlabeled" in reason}
    assert off == {"weight_factor", "sharpness_rule", "own_sharpness"}
    assert {name for name, reason in reasons.items() if reason} - off == {"seed"}
    assert ExplorerState().why_off("seed") == ""


def test_controls_have_texts_and_values_and_undo_is_off_until_it_can():
    controls = {control["name"]: control for control in controls_of(state_on(FEW, ELABORATE))}
    slider = controls["trace_weight"]
    assert (slider["text"], slider["options"][slider["value"]]) == ("0.3", 0.3)
    assert controls["weight_factor"]["text"].startswith("2.5 → ")
    assert controls["sharpness_rule"]["value"] is False
    for state in (ExplorerState(), after(ExplorerState(), {"key": "Enter"})):
        buttons = {button.get("data-move"): button for button in section(state, "moves")}
        assert {*buttons, "clear"} == set(MOVES)
        assert ("disabled" in buttons["undo"].attrib) == (not state.past)


# What the page says and draws


@pytest.mark.parametrize(
    ("position", "verdict"), [(0, "not optimal"), (3, "certified to 1e-08"), (4, "not optimal")]
)
def test_the_certificate_panel_shows_the_referees_numbers(position, verdict):
    state = state_on(FEW, ELABORATE, position)
    shown = values_in(section(state, "status"))
    certificate = certify(state.half_step.objective, state.half_step.metric)
    bounds = certificate.primal_value, certificate.dual_value
    np.testing.assert_allclose([float(shown[k]) for k in ("primal", "dual")], bounds, rtol=1e-9)
    assert (shown["gap"], shown["verdict"]) == (f"{certificate.relative_gap:.2e}", verdict)
    assert (certificate.relative_gap > 1e-3) == (verdict == "not optimal")


def test_the_gap_is_drawn_after_every_half_step_on_a_logarithmic_axis():
    state = ExplorerState(position=6)
    heights = [float(circle.get("cy")) for circle in section(state, "gaps").iter("circle")]
    e_steps, m_steps = heights[:4], heights[4:]
    assert len(m_steps) == 3
    assert max(e_steps) < min(m_steps)  # the axis points down: an M-step closes the gap
    gaps = [half_step.certificate.relative_gap for half_step in state.history[::2]]
    assert np.corrcoef(np.log(gaps), e_steps)[0, 1] < -0.999


def test_heat_is_p_above_the_diagonal_and_the_labels_of_f_below_and_so_is_the_picture():
    half_step = state_on(FEW, ELABORATE, 4).half_step
    pairs, A, above = half_step.objective.pairs, half_step.metric, np.triu(np.ones((7, 7)))
    v, labels = FEW.X[:, None] - FEW.X, np.zeros((7, 7))
    labels[tuple(pairs.similar.T)] = 1.0
    labels[tuple(pairs.unlabeled.T)] = soft_label_vector(half_step.objective)
    p = paper.posterior(np.einsum("ijk,kl,ijl->ij", v, A, v), 1.0, ELABORATE.threshold)
    heat = pair_heat(FEW, half_step)
    np.testing.assert_allclose(heat, p * above + labels.T, rtol=1e-12)
    Z = FEW.X @ symmetric_root(A)
    direction = np.linalg.svd(Z - Z.mean(axis=0))[2][0]
    order = np.argsort(Z @ direction * np.sign(direction[np.abs(direction).argmax()]))
    p, labels = (np.maximum(M, M.T)[np.ix_(order, order)] for M in (p, labels))
    opacity = pixels_in(section(state_on(FEW, ELABORATE, 4), "pairs"))[..., 3] / 255.0
    np.testing.assert_allclose(opacity, p * above + labels * (1.0 - above), atol=0.003)


def test_heat_of_the_plane_is_p_of_each_place_with_the_chosen_point():
    scene = replace(FEW, chosen=2)
    half_step = state_on(scene, ELABORATE, 3).half_step
    rows, columns = np.array([0, 0, 31]), np.array([0, 49, 7])
    v = scene.to_plane((np.stack([columns, rows], axis=1) + 0.5) * SIDE / 50) - scene.X[2]
    d = np.einsum("ij,jk,ik->i", v, half_step.metric, v)
    expected = paper.posterior(d, 1.0, ELABORATE.threshold)
    np.testing.assert_allclose(plane_heat(scene, half_step)[rows, columns], expected, rtol=1e-12)


def test_ellipse_of_a_flat_metric_is_a_long_strip_and_of_zero_nothing():
    flat = ellipse(np.diag([4.0, 0.0]), 1.0, longest=30.0)
    np.testing.assert_allclose(np.abs(flat).max(axis=0), [0.5, 30.0])
    assert len(ellipse(np.zeros((2, 2)), 1.0, longest=30.0)) == 0
    A = np.array([[2.0, 0.7], [0.7, 1.0]])
    v = ellipse(A, 2.5, longest=30.0)
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", v, A, v), 2.5)


def test_each_class_has_a_mark_of_its_own_and_even_odds_a_line_where_eta_is_not_1():
    scene = scene_of(POSITIONS, (0, 0, 1, 1, 2, -1, -1))
    for chosen, n_even in ((Settings(), 0), (ELABORATE, 1)):
        marks = Counter(marks_in(section(state_on(scene, chosen), "plane")))
        assert marks["polygon", "even"] == n_even
        expected = ("circle", "class0", 2), ("rect", "class1", 2), ("circle", "unknown", 2)
        for tag, kind, count in (*expected, ("polygon", "class2", 1)):
            assert marks[tag, kind] == count


# The tabs


@pytest.mark.parametrize("position", [0, 1, 4])
@pytest.mark.parametrize("scene", [FEW, scene_named("Gaussians")], ids=["few", "Gaussians"])
def test_the_python_makes_the_state_again_to_the_last_digit(scene, position, capsys):
    state = state_on(scene, ELABORATE, position)
    names = {}
    exec(compile(sheet(state, "Python"), "recipe", "exec"), names)
    half_step = state.half_step
    assert capsys.readouterr().out.splitlines() == [
        f"metric {half_step.metric.tolist()}",
        f"relative gap {half_step.certificate.relative_gap}",
    ]
    assert names["certificate"] == half_step.certificate
    assert names["objective"].value(half_step.metric) == half_step.objective.value(half_step.metric)


def test_the_statement_is_equation_11_typeset_with_its_numbers_and_its_proof():
    state = state_on(FEW, ELABORATE, 2)
    html = well_formed(sheet(state, "Statement"))
    text = "".join(html.itertext())
    convex = "problem: convex (minimizes a convex function over a convex set)"
    for part in ("(11)", convex, "#𝒮 = 2", f"μ = {state.half_step.objective.mu:.4g}"):
        assert part in text
    assert len(list(html.iter("math"))) >= 14
    assert not re.search("sum_|lambda|<G", text)
    assert text.count("as above") == 3
    assert len(list(well_formed(sheet(state, "Formulas")).iter("math"))) >= 6


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("mu sum_U log(1 + e^s)", "μ∑𝒰ln(1+es)"),
        ("(-<G, A>)", "(−⟨G,A⟩)"),
        ("lambda tr(A)", "λtr(A)"),
        ("s = v'Av - eta", "s=v⊤Av−η"),
        ("array (3)", "array (3)"),
        ("0.013513513513513514", "0.01351"),
        ("<b>", "⟨b⟩"),
    ],
)
def test_labels_of_cvxpy_are_typeset_where_they_are_formulas(label, text):
    assert text_of(typeset(label)) == text


def test_gaps_by_iteration_fall_to_the_tolerance_and_are_the_certificates():
    half_step = state_on(FEW, ELABORATE, 2).half_step
    newton = gaps_by_iteration(half_step, "newton")
    assert [step for step, _ in newton] == [1, 2, 3, 4, 6, 7]  # rank increases count as steps
    assert newton[-1][1] <= 1e-8
    slow = gaps_by_iteration(half_step, "projected-gradient", 10)
    assert [step for step, _ in slow] == [1, 2, 3, 4, 6, 9]
    for gaps in (newton, slow):
        assert np.all(np.diff(gaps, axis=0)[:, 1] < 0.0)
    assert gaps_by_iteration(half_step, "CLARABEL") == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solvers_grade_is_the_referees_and_not_its_own(solver):
    state = state_on(FEW, ELABORATE, 2)
    objective = state.half_step.objective
    reference, answer = (ask_solver(state.half_step, name) for name in ("newton", solver))
    proved = certify(objective, answer.metric)
    assert proved.relative_gap <= answer.relative_gap
    assert (answer.status is Status.CERTIFIED) == (answer.relative_gap <= 1e-8)
    assert proved.primal_value - reference.value <= proved.duality_gap
    if solver != "projected-gradient":  # whose course takes seconds
        cells = [cell.text for cell in well_formed(sheet(state, "Solvers", solver)).iter("td")]
        shown = {f"{answer.value:.10g}", f"{answer.relative_gap:.1e}", answer.status.value}
        assert shown <= set(cells)


def test_no_solver_is_asked_unless_one_is_named_and_one_that_gives_nothing_says_so(monkeypatch):
    unasked = text_of(sheet(ExplorerState(), "Solvers"))
    assert "Ask another solver" in unasked
    assert "relative gap" not in unasked
    answer = ask_solver(state_on(FEW).half_step, "newton")
    failed = replace(answer, found=None, solver="SCS", message="No matrix came back.")
    monkeypatch.setattr(views, "ask_solver", lambda _, name: failed if name == "SCS" else answer)
    shown = text_of(sheet(state_on(FEW), "Solvers", "SCS"))
    assert "no answer" in shown
    assert "SCS: No matrix came back." in shown


# Nonsense: words, never a stack trace


ONE_EACH = scene_of(POSITIONS, (0, -1, 1, -1, -1, -1, -1))
FULL = scene_of(np.random.default_rng(0).random((MOST_POINTS, 2)), (0, 1) + (-1,) * 198)
NONSENSE = {
    "no point": (Scene(), {}, "There is no point"),
    "one point": (scene_of([(0.0, 0.0)], [0]), {}, "There is 1 point"),
    "no label": (FEW.unlabeled(), {}, "No point has a label"),
    "one label": (scene_of(POSITIONS, (0, *[-1] * 6)), {}, "One point has a label"),
    "one class": (scene_of(POSITIONS, (0, 0, 0, -1, -1, -1, -1)), {}, "Only one class is known"),
    "points equal": (scene_of([(0.5, 0.5)] * 7, FEW.y), {}, "All points are equal"),
    "huge lambda": (FEW, {"trace_weight": 1e3}, "The metric is 0, for λ is not below"),
    "no optimum": (ONE_EACH, {"trace_weight": 0.0}, "has no optimum"),
    "full": (FULL, {}, f"takes no more than {MOST_POINTS} points"),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_failure_nonsense_is_answered_in_words(case):
    scene, changes, message = NONSENSE[case]
    state = state_on(scene, Settings(**changes)).forward().forward().run()
    status = "".join(section(state, "status").itertext())
    assert message in status
    assert "Traceback" not in status
    for name in ("Statement", "Solvers", "Formulas"):
        well_formed(sheet(state, name, "newton" if case != "full" else None))
    compile(sheet(state, "Python"), "recipe", "exec")
    if case == "full":
        assert scene.answer({"x": 5.0, "y": 5.0}) is scene
    if case == "no optimum":
        assert values_in(section(state, "status"))["verdict"] == "no optimum exists"
        assert (state.forward().position, replace(state, position=5).half_step.number) == (0, 0)
        assert replace(state, position=5).adjusted(trace_weight=1.0).half_step.number == 5


COORDINATE = st.floats(0, 400)
STOPS = st.integers(0, len(CONTROLS["trace_weight"].options) - 1)
EVENTS = st.one_of(
    st.fixed_dictionaries({"x": COORDINATE, "y": COORDINATE, "shift": st.booleans()}),
    st.sampled_from([{"key": key} for key in ("ArrowLeft", "Enter", "Delete", "x")]),
    st.sampled_from([{"move": move} for move in MOVES]),
    st.just({"x": 200.0, "y": 200.0}),
    st.fixed_dictionaries({"set": st.just("trace_weight"), "value": STOPS}),
    st.sampled_from([{"set": "weight_factor", "value": stop} for stop in (0, 1, 50)]),
)


@given(st.lists(EVENTS, max_size=12))
def test_property_no_sequence_of_events_breaks_the_page(events):
    state = state_on(FEW)
    for event in events:
        state = after(state, event)
        half_step = state.half_step
        if half_step is None or half_step.trouble:
            assert messages_on(state)
        elif half_step.number % 2:
            assert half_step.certificate.relative_gap <= 1e-8
    panels = well_formed(panels_of(state))
    assert (state.half_step is None) == (len(panels) == 5)

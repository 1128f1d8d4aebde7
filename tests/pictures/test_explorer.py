"""Evidence: the explorer shows the library's numbers, answers nonsense in words, works offline."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import queue
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection
from itertools import pairwise
from xml.etree import ElementTree

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from seraph_cvx import PairSet, Status, alternate, certify, e_step
from seraph_cvx.cli import app
from seraph_cvx.cli import explore as command
from seraph_cvx.explorer import stepwise_alternation as walk_room
from seraph_cvx.explorer.guard import Guard
from seraph_cvx.explorer.heat import encode_png, pair_heat, plane_heat
from seraph_cvx.explorer.panels import (
    BUTTONS,
    announce,
    certificate_table,
    panels_of,
    position_of,
    words_on,
)
from seraph_cvx.explorer.pictures import (
    draw_pairs,
    draw_plane,
    ellipse,
    principal_order,
    square_root,
)
from seraph_cvx.explorer.recipe import python_of
from seraph_cvx.explorer.scene import DRAWN, MOST_POINTS, SCENES, SIDE, Scene, scene_named
from seraph_cvx.explorer.state import MOVES, ExplorerState
from seraph_cvx.explorer.stepwise_alternation import (
    TRACE_WEIGHTS,
    Settings,
    StepwiseAlternation,
    alternation_of,
)
from seraph_cvx.explorer.tabs import SOLVERS, answer_table, answers_of, sheet

NAMED = [name for name in SCENES if name != DRAWN]
FEW = Scene(
    ((-1.0, 0.0), (-0.8, 1.5), (1.0, 0.2), (1.1, -1.0), (-0.9, -1.2), (0.9, 1.1), (0.1, 0.3)),
    (0, 0, 1, 1, -1, -1, -1),
)
ELABORATE = Settings(2.5, 0.3, 1.7, paper_sharpness=False, own_sharpness=2.2)


def state_on(scene, settings=None, position=0):
    return ExplorerState("draw your own", scene, settings or Settings(), position)


def told(state, event):
    return state.answer([{**event, "count": state.heard + 1}])


def pressed(state, key):
    return told(state, {"key": key})


def content_of(state, name):
    return {panel["name"]: panel["content"] for panel in panels_of(state)}[name]


def well_formed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


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
    with pytest.raises(ValueError, match="no scene 'spirals'; the known ones are two moons"):
        scene_named("spirals")


# The alternation against the library and against double loops


def soft_labels_of(half_step):
    """q(+1) of the current M-step, one by one."""
    objective = half_step.objective
    if objective.previous_metric is None:
        return np.zeros(objective.pairs.n_unlabeled)
    return e_step(
        objective.pairs,
        objective.previous_metric,
        objective.mu,
        objective.threshold,
        objective.sharpness,
    )


@pytest.mark.parametrize("chosen", [Settings(), ELABORATE], ids=["defaults", "elaborate"])
def test_formulas_agree_J_and_7_with_double_loops_at_every_half_step(chosen):
    state = state_on(FEW, chosen, 6)
    pairs = PairSet.from_labels(FEW.X, FEW.y)
    mu = chosen.weight_factor * pairs.n_labeled / pairs.n_unlabeled
    a = 1.0 + mu if chosen.paper_sharpness else chosen.own_sharpness
    numbers = (chosen.trace_weight, chosen.threshold)
    assert [half_step.number for half_step in state.history] == list(range(7))
    for half_step in state.history:
        J = naive.descent(pairs, soft_labels_of(half_step), mu, a, *numbers, half_step.metric)
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
    assert pressed(state, "Enter").restore().scene == scene_named("two moons")


def test_the_chosen_point_changes_pictures_and_not_the_walk():
    state = ExplorerState().forward()
    other = pressed(state, "ArrowRight")
    assert other.alternation is state.alternation
    assert content_of(other, "plane") != content_of(state, "plane")
    assert content_of(other, "certificate") == content_of(state, "certificate")


def test_clicks_that_come_at_once_are_all_answered_and_none_twice():
    first, second = {"key": "ArrowRight", "count": 1}, {"key": "Enter", "count": 2}
    state = state_on(FEW).answer([first, second])
    assert (state.scene.chosen, state.scene.labels[1], state.heard) == (1, 1, 2)
    third = state.answer([first, second, {"key": "Enter", "count": 3}])
    assert third.scene.labels[1] == 2
    assert third.answer([second]) == third


def test_every_button_has_its_move():
    assert list(BUTTONS) == list(MOVES)
    state = ExplorerState()
    stepped = state.answer([{"move": "forward", "count": count} for count in (1, 2, 3)])
    assert position_of(stepped) == "half-step 3: M-step 2"
    assert told(stepped, {"move": "back"}).position == 2
    assert told(stepped, {"move": "reset"}).position == 0
    assert told(stepped, {"move": "jump"}).half_step is stepped.half_step
    assert set(told(stepped, {"move": "forget"}).scene.labels) == {-1}


# What is shown


@pytest.mark.parametrize("position", [0, 1, 4])
@pytest.mark.parametrize("scene", [FEW, scene_named("Gaussians")], ids=["few", "Gaussians"])
def test_the_python_makes_the_state_again_to_the_last_digit(scene, position):
    state = state_on(scene, ELABORATE, position)
    names = {}
    exec(compile(python_of(state), "recipe", "exec"), names)
    half_step = state.half_step
    np.testing.assert_array_equal(names["metric"], half_step.metric)
    assert names["certificate"] == half_step.certificate
    assert names["objective"].value(half_step.metric) == half_step.objective.value(half_step.metric)


@pytest.mark.parametrize(
    ("position", "verdict"), [(0, "not optimal"), (3, "certified to 1e-08"), (4, "not optimal")]
)
def test_the_certificate_panel_shows_the_referees_numbers(position, verdict):
    state = state_on(FEW, ELABORATE, position)
    table = well_formed(certificate_table(state.half_step))
    shown = {cell.get("data-value"): cell.text for cell in table.iter("td")}
    certificate = certify(state.half_step.objective, state.half_step.metric)
    assert float(shown["primal"]) == pytest.approx(certificate.primal_value, rel=1e-9)
    assert float(shown["dual"]) == pytest.approx(certificate.dual_value, rel=1e-9)
    assert shown["gap"] == f"{certificate.relative_gap:.2e}"
    assert shown["verdict"] == verdict
    assert (certificate.relative_gap > 1e-3) == (verdict == "not optimal")


def test_heat_is_p_above_the_diagonal_and_what_f_is_told_below():
    half_step = state_on(FEW, ELABORATE, 4).half_step
    pairs, q = half_step.objective.pairs, iter(soft_labels_of(half_step))
    heat = pair_heat(FEW, half_step)
    for (i, j), y in naive.weak_labels(pairs).items():
        s = naive.score(FEW.X, i, j, half_step.metric, ELABORATE.threshold)
        assert heat[i, j] == pytest.approx(naive.sigmoid(-s), rel=1e-12)
        assert heat[j, i] == pytest.approx({1: 1.0, -1: 0.0}.get(y) if y else next(q), rel=1e-12)


def test_the_picture_of_the_pairs_is_that_heat_in_its_order():
    image = pytest.importorskip("PIL.Image")
    half_step = state_on(FEW, ELABORATE, 4).half_step
    heat, order = pair_heat(FEW, half_step), principal_order(FEW.X @ square_root(half_step.metric))
    assert order.tolist() != list(range(7))
    encoded = re.search('base64,([^"]+)', draw_pairs(FEW, half_step)).group(1)
    with image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        opacity = np.asarray(picture)[..., 3] / 255.0
    for row, i in enumerate(order):
        for column, j in enumerate(order):
            above = (min(i, j), max(i, j))
            expected = heat[above] if column >= row else heat[above[::-1]]
            assert opacity[row, column] == pytest.approx(expected, abs=0.003)


def test_heat_of_the_plane_is_p_of_each_place_with_the_chosen_point():
    scene = replace(FEW, chosen=2)
    half_step = state_on(scene, ELABORATE, 3).half_step
    heat = plane_heat(scene, half_step)
    for row, column in ((0, 0), (0, 49), (31, 7)):
        place = scene.to_plane((column + 0.5) * SIDE / 50, (row + 0.5) * SIDE / 50)
        v = np.array(place) - scene.X[2]
        expected = naive.sigmoid(ELABORATE.threshold - v @ half_step.metric @ v)
        assert heat[row, column] == pytest.approx(expected, rel=1e-3)


def test_png_is_read_by_another_library(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 4)).astype(float)
    (tmp_path / "p.png").write_bytes(encode_png(pixels))
    with image.open(tmp_path / "p.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture), pixels)


def test_ellipse_of_a_flat_metric_is_a_long_strip_and_of_zero_nothing():
    flat = ellipse(np.diag([4.0, 0.0]), 1.0, longest=30.0)
    assert np.abs(flat[:, 0]).max() == pytest.approx(0.5)
    assert np.abs(flat[:, 1]).max() == pytest.approx(30.0)
    assert len(ellipse(np.zeros((2, 2)), 1.0, longest=30.0)) == 0
    A = np.array([[2.0, 0.7], [0.7, 1.0]])
    v = ellipse(A, 2.5, longest=30.0)
    np.testing.assert_allclose(np.einsum("ij,jk,ik->i", v, A, v), 2.5)
    np.testing.assert_allclose(square_root(A) @ square_root(A), A, atol=1e-14)


def test_each_class_has_a_mark_of_its_own():
    labels = (0, 0, 1, 1, 2, -1, -1)
    plane = well_formed(draw_plane(replace(FEW, labels=labels), state_on(FEW).half_step))
    marks = [(mark.tag, mark.get("class")) for mark in plane.iter() if mark.get("class")]
    assert [marks.count(mark) for mark in (("circle", "class0"), ("circle", "unknown"))] == [2, 2]
    assert sum(kind == "class1" for _, kind in marks) == 2
    (triangle,) = [mark for mark in plane.iter() if mark.get("class") == "class2"]
    corners = np.array([c.split(",") for c in triangle.get("points").split()], dtype=float)
    assert len(corners) == 3
    np.testing.assert_allclose(corners.mean(axis=0), FEW.to_screen(FEW.X)[4], atol=1.0)


def test_the_even_odds_line_is_drawn_where_eta_is_not_1():
    assert 'class="even"' not in draw_plane(FEW, state_on(FEW).half_step)
    assert 'class="even"' in draw_plane(FEW, state_on(FEW, ELABORATE).half_step)


def test_the_statement_is_equation_11_with_its_proof():
    text = "".join(well_formed(sheet(ExplorerState(), "Statement")).itertext())
    assert text.startswith("minimize sum_SD log(1 + e^s)")
    assert "problem: CONVEX" in text
    assert "mu sum_U log(1 + e^s)" in text


def test_formulas_are_mathml():
    assert len(list(well_formed(sheet(ExplorerState(), "Formulas")).iter("math"))) >= 6


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solvers_grade_is_the_referees_and_not_its_own(solver):
    half_step = state_on(FEW, ELABORATE, 2).half_step
    answers = answers_of(half_step, solver)
    assert [answer.solver for answer in answers] == list(dict.fromkeys(["fista", solver]))
    for answer in answers:
        proved = certify(half_step.objective, answer.metric)
        assert proved.relative_gap <= answer.relative_gap
        assert (answer.status is Status.CERTIFIED) == (answer.relative_gap <= 1e-8)
        assert proved.primal_value - answers[0].value <= proved.duality_gap
    assert answers[0].status is Status.CERTIFIED
    html = answer_table(answers)
    well_formed(html)
    for text in (f"{answers[-1].value:.10g}", f"{answers[-1].relative_gap:.1e}"):
        assert f">{text}<" in html
    assert f">{answers[-1].status.value}<" in html


def test_no_solver_is_asked_unless_one_is_named():
    said = "".join(well_formed(sheet(ExplorerState(), "Solvers")).itertext())
    assert "Ask another solver" in said
    assert "relative gap" not in said


def test_failure_a_solver_that_gives_nothing_is_told_in_words():
    answer = answers_of(state_on(FEW).half_step, "fista")[0]
    failed = replace(answer, metric=None, solver="X", message="No matrix came back.")
    html = answer_table([answer, failed])
    assert "no answer" in html
    assert "X: No matrix came back." in html


# Nonsense: words, never a stack trace


SAME = Scene(tuple([(0.5, 0.5)] * 6), (0, 0, 1, 1, -1, -1))
NONSENSE = {
    "no point": (Scene(), {}, "There is no point"),
    "one point": (Scene(((0.0, 0.0),), (0,)), {}, "There is 1 point"),
    "no label": (FEW.unlabeled(), {}, "No point has a label"),
    "one label": (replace(FEW, labels=(0, *[-1] * 6)), {}, "One point has a label"),
    "one class": (replace(FEW, labels=(0, 0, 0, 0, -1, -1, -1)), {}, "Only one class is known"),
    "points equal": (SAME, {}, "All points are equal"),
    "huge lambda": (FEW, {"trace_weight": 1e3}, "The metric is 0, for λ is not below"),
    "no optimum": (
        replace(FEW, labels=(0, -1, 1, -1, -1, -1, -1)),
        {"trace_weight": 0.0},
        "has no optimum",
    ),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_failure_nonsense_is_answered_in_words(case):
    scene, changes, words = NONSENSE[case]
    state = state_on(scene, Settings(**changes)).forward().forward().run()
    said = "".join(well_formed(announce(state)).itertext())
    assert words in said
    assert "Traceback" not in said
    for panel in panels_of(state):
        well_formed(panel["content"] + panel["caption"])
    for name in ("Statement", "Solvers", "Formulas"):
        well_formed(sheet(state, name, "fista"))
    compile(sheet(state, "Python"), "recipe", "exec")


def test_failure_an_optimum_lost_on_the_way_comes_back_with_lambda():
    state = state_on(replace(FEW, labels=(0, -1, 1, -1, -1, -1, -1)), position=5)
    lost = state.with_settings(trace_weight=0.0)
    assert lost.half_step.number == 0
    assert "no optimum exists" in certificate_table(lost.half_step)
    assert lost.forward().position == 0
    assert lost.with_settings(trace_weight=1.0).half_step.number == 5


EVENTS = st.one_of(
    st.builds(
        lambda x, y, s: {"x": x, "y": y, "shift": s}, *[st.floats(0, 400)] * 2, st.booleans()
    ),
    st.sampled_from([{"key": key} for key in ("ArrowLeft", "Enter", "Delete", "x")]),
)
ANY_MOVE = st.one_of(
    EVENTS.map(lambda event: lambda state: told(state, event)),
    st.sampled_from(
        [
            *MOVES.values(),
            lambda state: told(state, {"x": 200.0, "y": 200.0}),
        ]
    ),
    st.sampled_from(TRACE_WEIGHTS).map(lambda v: lambda s: s.with_settings(trace_weight=v)),
    st.sampled_from([0.0, 0.1, 5.0]).map(lambda v: lambda s: s.with_settings(weight_factor=v)),
)


@settings(max_examples=25)
@given(st.lists(ANY_MOVE, max_size=12))
def test_property_no_sequence_of_moves_breaks_the_page(moves):
    state = state_on(FEW)
    for move in moves:
        state = move(state)
        half_step = state.half_step
        for panel in panels_of(state):
            well_formed(panel["content"])
        assert (half_step is None) == (len(panels_of(state)) == 3)
        if half_step is None or half_step.trouble:
            assert words_on(state)
        elif half_step.number % 2:
            assert half_step.certificate.relative_gap <= 1e-8


def test_two_tabs_may_walk_at_once():
    from concurrent.futures import ThreadPoolExecutor

    alternation = StepwiseAlternation(FEW, Settings())
    with ThreadPoolExecutor(4) as pool:
        numbers = [half_step.number for half_step in pool.map(alternation.at, [9, 8, 9, 7, 9, 5])]
    assert numbers == [9, 8, 9, 7, 9, 5]
    assert [half_step.number for half_step in alternation.half_steps] == list(range(10))


@pytest.mark.slow
def test_the_librarys_part_of_a_slider_move_takes_less_than_300_ms():
    """By processor time: what other processes take of the machine is not the library's part."""
    state, seconds = ExplorerState(position=9), []
    panels_of(state)
    for k in range(30):
        clock = time.process_time()
        panels_of(state.with_settings(weight_factor=0.5 + k / 10.0))
        seconds.append(time.process_time() - clock)
    assert statistics.median(seconds) < 0.3, seconds


# The command


def test_command_needs_the_extra_and_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "marimo", None)
    done = CliRunner().invoke(app, ["explore"])
    assert done.exit_code == 2
    assert (
        'needs marimo, which is not installed: run pip install "seraph-cvx[explore]"'
        in " ".join(done.output.split())
    )


def test_command_refuses_a_port_in_use():
    pytest.importorskip("marimo")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["explore", "--port", str(port)])
    assert done.exit_code == 2
    assert f"Port {port} cannot be used" in " ".join(done.output.split())


@pytest.fixture
def launched(monkeypatch):
    """What the command starts, with the token given to it and whom its socket hears."""
    pytest.importorskip("marimo")
    launches = []

    def run(arguments, input, pass_fds, **_):
        with socket.socket(fileno=os.dup(pass_fds[0])) as listener:
            assert arguments[3:] == [str(pass_fds[0])]
            launches.append((arguments, input, listener.getsockname()))
        return subprocess.CompletedProcess(arguments, 3)

    monkeypatch.setattr(command.subprocess, "run", run)
    return launches


def test_command_serves_the_page_to_this_machine_only(launched):
    done = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert done.exit_code == 3
    ((arguments, token, (host, port)),) = launched
    assert arguments[:3] == [sys.executable, "-m", "seraph_cvx.explorer.server"]
    assert host == "127.0.0.1"
    assert 2718 <= port <= 2818
    assert f"\nhttp://127.0.0.1:{port}/?token={token}\n" in done.output


def test_command_makes_a_new_token_at_each_start_and_shows_it_in_no_command_line(launched):
    for _ in range(2):
        CliRunner().invoke(app, ["explore", "--no-browser"])
    (arguments, first, _), (_, second, _) = launched
    assert first != second
    assert len(first) >= 22
    assert not any(first in argument for argument in arguments)


def test_command_opens_the_link_in_a_browser_unless_told_not_to(launched, monkeypatch):
    opened = queue.Queue()
    monkeypatch.setattr(command.webbrowser, "open", opened.put)
    done = CliRunner().invoke(app, ["explore"])
    assert opened.get(timeout=10) in done.output.split()
    CliRunner().invoke(app, ["explore", "--no-browser"])
    assert opened.empty()


def test_command_takes_the_next_port_where_the_first_is_in_use(launched, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(command, "FIRST_PORT", port)
        monkeypatch.setattr(command, "LAST_PORT", port)
        done = CliRunner().invoke(app, ["explore", "--no-browser"])
        assert done.exit_code == 2
        assert f"No port from {port} to {port} is free" in " ".join(done.output.split())
        monkeypatch.setattr(command, "LAST_PORT", port + 20)
        CliRunner().invoke(app, ["explore", "--no-browser"])
    assert port < launched[0][2][1] <= port + 20


def test_command_ends_well_by_ctrl_c(monkeypatch):
    pytest.importorskip("marimo")

    def run(arguments, **_):
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(command.subprocess, "run", run)
    done = CliRunner().invoke(app, ["explore", "--no-browser"])
    assert done.exit_code == 0
    assert "The explorer has stopped." in done.output
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_logic_needs_no_marimo():
    code = "import sys, seraph_cvx.explorer.tabs; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"marimo", "anywidget", "cvxpy"}


def test_the_widget_names_no_address():
    widget = pytest.importorskip("seraph_cvx.explorer.widget")
    sources = widget.SCRIPT + widget.STYLE + widget.CODE_SCRIPT + widget.CODE_STYLE
    assert not re.search(r"https?:|//[a-z]|url\(|@import|import\(", sources)


def test_walks_are_kept():
    assert alternation_of(FEW, Settings()) is alternation_of(FEW, Settings())


# The guard of the page


def guarded(kind="http", query="", path="/", method="GET", host="127.0.0.1:5", **more):
    """What the guard of a page on port 5, with the token "right", sends; or what `app` would."""
    sent = []

    async def receive():
        return {"type": f"{kind}.connect"}

    async def send(message):
        sent.append(message)

    async def page(scope, receive, send):
        sent.append({"type": "served"})

    headers = [(b"host", host.encode())] if host else []
    headers += [(name.encode(), value.encode()) for name, value in more.items()]
    scope = {"type": kind, "path": path, "method": method, "headers": headers}
    scope["query_string"] = query.encode()
    asyncio.run(Guard(page, "right", 5)(scope, receive, send))
    return sent


RIGHT = {"cookie": "a=b; seraph_explorer_5=right"}


@pytest.mark.parametrize(
    "asked",
    [
        RIGHT,
        RIGHT | {"kind": "websocket", "origin": "http://127.0.0.1:5"},
        RIGHT | {"method": "POST", "origin": "http://127.0.0.1:5"},
        RIGHT | {"host": "localhost:9", "origin": "http://localhost:9"},  # by way of ssh -L 9:...
        {"kind": "websocket", "query": "session_id=7&token=right"},
        {"path": "/manifest.json"},
        {"kind": "lifespan"},
    ],
)
def test_guard_lets_through_what_knows_the_token_and_comes_from_the_page(asked):
    assert guarded(**asked) == [{"type": "served"}]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"query": "token=wrong"},
        {"query": "token="},
        {"query": "token=right%00"},
        {"query": "token=%FF"},
        {"cookie": "seraph_explorer_5=wrong"},
        {"cookie": "seraph_explorer_6=right"},
        {"cookie": "seraph_explorer_5"},
        {"cookie": "\xff=; =; ;"},
        RIGHT | {"origin": "http://evil.example"},
        RIGHT | {"origin": "http://127.0.0.1:6"},
        RIGHT | {"origin": "https://127.0.0.1:5"},
        RIGHT | {"origin": "http://127.0.0.1:5.evil.example"},
        RIGHT | {"origin": "http://localhost:5"},
        RIGHT | {"origin": "null"},
        RIGHT | {"origin": ""},
        RIGHT | {"host": "evil.example:5", "origin": "http://evil.example:5"},
        RIGHT | {"host": "127.0.0.1.evil.example"},
        RIGHT | {"host": ""},
        {"query": "token=right", "origin": "http://evil.example"},
        {"path": "/manifest.json", "origin": "http://evil.example"},
    ],
)
def test_guard_refuses_whoever_lacks_the_token_or_comes_from_elsewhere(kind, asked):
    sent = guarded(kind, **asked)
    assert sent[0].get("status", sent[0].get("code")) in (403, 1008)
    assert b"explorer" in sent[-1].get("body", b"explorer")
    assert {"type": "served"} not in sent


def test_guard_answers_the_link_by_a_cookie_and_leads_on_without_the_token():
    start, _ = guarded(query="token=right", path="//evil.example")
    headers = dict(start["headers"])
    assert (start["status"], headers[b"location"]) == (303, b"/")
    assert headers[b"set-cookie"] == b"seraph_explorer_5=right; HttpOnly; SameSite=Lax; Path=/"
    assert headers[b"cache-control"] == b"no-store"


# The page in a real browser


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]

STOPWATCH = """() => {
  window.taken = [];
  window.changed = 0;
  let pressed = 0;
  document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
  const find = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.matches(".seraph-panels")) return element;
      const inside = element.shadowRoot && find(element.shadowRoot);
      if (inside) return inside;
    }
  };
  new MutationObserver(() => {
    window.changed = performance.now();
    if (pressed) window.taken.push(performance.now() - pressed);
    pressed = 0;
  }).observe(find(document), { childList: true, subtree: true });
}"""

SETTLED = "n => window.taken.length > n && performance.now() - window.changed > 100"
"""Whether more than n answers have come, and 100 ms ago the last part of them."""


@pytest.fixture(scope="module")
def link(tmp_path_factory):
    """The link of the page, served by the command."""
    pytest.importorskip("marimo", reason="marimo is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("explorer")
    environment = os.environ | {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    arguments = ["-m", "seraph_cvx", "explore", "--port", str(port), "--no-browser"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, *arguments], stdout=log, stderr=log, env=environment, cwd=folder
        )
    try:
        for _ in range(240):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5):
                break
            time.sleep(0.25)
        yield re.search(r"^http\S+$", (folder / "log").read_text(encoding="utf-8"), re.M).group()
    finally:
        server.terminate()
        server.wait(20)
    said = (folder / "log").read_text(encoding="utf-8")
    assert server.returncode == 0, said
    assert "The explorer has stopped." in said
    assert "Traceback" not in said


@pytest.fixture(scope="module")
def address(link):
    """Where the page is, without its token."""
    return link.partition("?")[0]


@pytest.fixture
def open_page(link, address, tmp_path):
    """A function that opens the page in Chromium; what it asked for and complained of is kept."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def opened(width=1280, scheme="light"):
            context = browser.new_context(
                viewport={"width": width, "height": 1600}, color_scheme=scheme
            )
            context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
            page = context.new_page()
            page.complaints, page.asked = [], []
            page.on("console", lambda line: page.complaints.append((line.type, line.text)))
            page.on("pageerror", lambda error: page.complaints.append(("error", str(error))))
            page.on("request", lambda request: page.asked.append(request.url))
            page.on("websocket", lambda socket: page.asked.append(socket.url))
            page.goto(link)
            page.wait_for_selector("[data-value=descent]", timeout=90_000)
            return page

        yield opened
        browser.close()


def shown(page, name):
    return page.locator(f"[data-value={name}]").first.inner_text()


def wait_for(page, name, text):
    from playwright.sync_api import expect

    expect(page.locator(f"[data-value={name}]").first).to_contain_text(text, timeout=30_000)


def press_until(page, label, state):
    """Press a button, and wait for the counter of the state that should follow."""
    page.get_by_role("button", name=label, exact=True).click()
    wait_for(page, "position", position_of(state))


def agrees(page, state):
    """The page's numbers are those of the same state in this process."""
    half_step = state.half_step
    wait_for(page, "descent", f"{half_step.descent_value:.8g}"[:-1])
    assert float(shown(page, "descent")) == pytest.approx(half_step.descent_value, rel=1e-9)
    assert float(shown(page, "paper")) == pytest.approx(half_step.paper_objective, rel=1e-9)
    assert float(shown(page, "primal")) == pytest.approx(
        half_step.certificate.primal_value, rel=1e-9
    )
    assert float(shown(page, "gap")) == pytest.approx(
        half_step.certificate.relative_gap, rel=0.02, abs=1e-9
    )


def ask(address, path="/", method="GET", **headers):
    """The status, headers and body of a real answer; redirections are not followed."""
    connection = HTTPConnection(address.removeprefix("http://").strip("/"), timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode(errors="replace")
    finally:
        connection.close()


def first_word(address, query="", origin=None, cookie=None):
    """What the page's kernel says first over a real WebSocket, or the status of the refusal."""
    client = pytest.importorskip("websockets.sync.client", reason="websockets is not installed")
    place = f"{address.replace('http', 'ws')}ws?session_id=s_{os.urandom(4).hex()}{query}"
    headers = {"Cookie": cookie} if cookie else {}
    try:
        with client.connect(place, origin=origin, additional_headers=headers, proxy=None) as socket:
            return json.loads(socket.recv(timeout=60))["op"]
    except client.InvalidStatus as error:
        return error.response.status_code


def cookie_of(link):
    """What a browser keeps after it followed the link."""
    address, _, query = link.partition("?")
    status, headers, _ = ask(address, f"/?{query}")
    assert (status, headers["location"]) == (303, "/")
    return headers["set-cookie"].partition(";")[0]


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "token=wrong"])
def test_server_refuses_requests_without_the_token(address, query):
    for path in ("/", "/index.html", "/favicon.ico", "/api/status", "/health"):
        status, _, body = ask(address, f"{path}?{query}")
        assert (status, body.partition(":")[0]) == (403, "The explorer needs its token")
    status, _, _ = ask(address, f"/api/kernel/instantiate?{query}", "POST", Origin=address[:-1])
    assert status == 403
    assert first_word(address, f"&{query}", origin=address[:-1]) == 403


@pytest.mark.slow
def test_server_lets_in_who_follows_the_link(link, address):
    cookie = cookie_of(link)
    status, _, body = ask(address, Cookie=cookie)
    assert (status, "<title>SERAPH explorer" in body) == (200, True)
    assert ask(address, "/favicon.ico", Cookie=cookie)[0] == 200
    assert first_word(address, origin=address[:-1], cookie=cookie) == "kernel-ready"
    token = link.partition("?")[2]
    assert first_word(address, f"&{token}", origin=address[:-1]) == "kernel-ready"


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_server_refuses_a_foreign_origin_even_with_the_token(link, address, origin):
    token, cookie = link.partition("?")[2], cookie_of(link)
    assert first_word(address, origin=origin, cookie=cookie) == 403
    assert first_word(address, f"&{token}", origin=origin) == 403
    assert ask(address, Cookie=cookie, Origin=origin)[0] == 403
    assert ask(address, "/api/kernel/instantiate", "POST", Cookie=cookie, Origin=origin)[0] == 403
    assert ask(address, Cookie=cookie, Host="evil.example")[0] == 403


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is this machine on Linux alone")
def test_server_hears_no_other_address_of_this_machine(address):
    port = int(address.strip("/").rpartition(":")[2])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 5)


@pytest.mark.slow
def test_browser_the_page_shows_the_librarys_numbers_and_asks_for_nothing_else(open_page, address):
    page, state = open_page(), ExplorerState()
    agrees(page, state)
    page.locator("select").first.select_option("stripes")
    state = state.choose("stripes")
    agrees(page, state)
    for _ in range(3):
        state = state.forward()
        press_until(page, "Step ▶", state)
        agrees(page, state)
    page.get_by_role("slider").nth(1).press("ArrowRight")
    state = state.with_settings(trace_weight=TRACE_WEIGHTS[TRACE_WEIGHTS.index(1.0) + 1])
    agrees(page, state)
    state = state.back()
    press_until(page, "◀ Back", state)
    agrees(page, state)
    state = state.run()
    press_until(page, "Run to the end", state)
    agrees(page, state)
    page.get_by_role("tab", name="Python").click()
    page.get_by_role("button", name="Copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    names = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    np.testing.assert_array_equal(names["metric"], state.half_step.metric)
    assert names["certificate"].relative_gap <= 1e-8
    assert [text for kind, text in page.complaints if kind == "error"] == []
    allowed = (address, address.replace("http", "ws"), "data:", "blob:")
    assert [url for url in page.asked if not url.startswith(allowed)] == []


@pytest.mark.slow
def test_browser_clicks_label_and_add_and_nonsense_is_answered_in_words(open_page):
    page, state = open_page(), ExplorerState()
    plane = page.locator(".plane svg")
    scale = plane.bounding_box()["width"] / SIDE
    target = int(np.flatnonzero(state.scene.y < 0)[0])
    x, y = state.scene.to_screen(state.scene.X)[target]
    page.locator(".plane svg").click(position={"x": x * scale, "y": y * scale})
    state = told(state, {"x": x, "y": y})
    assert state.scene.labels[target] == 0
    agrees(page, state)
    assert page.locator(".plane .class0").count() == 5
    plane.click(position={"x": 15 * scale, "y": 385 * scale})
    wait_for_count(page, ".plane .unknown", 92)
    page.keyboard.press("Enter")
    wait_for_count(page, ".plane .class0", 6)
    page.get_by_role("button", name="Forget the labels").click()
    wait_for(page, "words", "No point has a label")
    page.locator("select").first.select_option(DRAWN)
    wait_for(page, "words", "There is no point")
    for x, y in ((50, 200), (60, 215), (300, 210)):
        plane.click(position={"x": x * scale, "y": y * scale})
        plane.click(position={"x": x * scale, "y": y * scale})
    wait_for(page, "words", "Only one class is known")
    plane.click(position={"x": 300 * scale, "y": 210 * scale})
    wait_for_count(page, ".plane .class1", 1)
    page.get_by_role("slider").nth(1).press("Home")
    wait_for(page, "words", "has no optimum")
    assert [text for kind, text in page.complaints if kind == "error"] == []
    assert "Traceback" not in page.content()


def wait_for_count(page, selector, count):
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_count(count, timeout=30_000)


@pytest.mark.slow
def test_browser_a_solver_is_asked_and_graded(open_page):
    page = open_page()
    press_until(page, "Step ▶", ExplorerState().forward())
    page.get_by_role("tab", name="Solvers").click()
    page.locator("select").nth(1).select_option("CLARABEL")
    page.get_by_role("button", name="Solve the current M-step").click()
    wait_for(page, "answers", "CLARABEL")
    value = ExplorerState().forward().half_step.certificate.primal_value
    assert shown(page, "answers").count(f"{value:.10g}"[:8]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800])
def test_browser_nothing_sticks_out_in_either_width_or_scheme(open_page, width, scheme, tmp_path):
    page = open_page(width, scheme)
    press_until(page, "Run to the end", ExplorerState().run())
    page.screenshot(path=tmp_path / "page.png")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for section in page.locator(".seraph-panels section").all():
        box = section.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    image = pytest.importorskip("PIL.Image")
    with image.open(tmp_path / "page.png") as picture:
        pixels = np.asarray(picture.convert("L"), dtype=float)
    assert (np.median(pixels) > 128) == (scheme == "light")
    assert pixels.std() > 10.0


@pytest.mark.slow
def test_browser_a_slider_is_answered_within_300_ms(open_page):
    """The lower quartile: what other processes take of the machine only adds."""
    from playwright.sync_api import TimeoutError

    page = open_page()
    state = ExplorerState()
    for _ in range(5):
        state = state.forward()
        press_until(page, "Step ▶", state)
    page.evaluate(STOPWATCH)
    for which in (0, 1, 2):
        slider = page.get_by_role("slider").nth(which)
        for key in ["ArrowRight", "ArrowRight", "ArrowLeft"] * 4:
            n_answers = page.evaluate("window.taken.length")
            slider.press(key)
            with suppress(TimeoutError):  # some moves change nothing
                page.wait_for_function(SETTLED, arg=n_answers, timeout=400)
    taken = page.evaluate("window.taken")
    assert len(taken) >= 30
    assert statistics.quantiles(taken)[0] < 300.0, taken

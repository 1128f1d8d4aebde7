"""Evidence: pictures are where their numbers say, say what they show, and move."""

from __future__ import annotations

import json
import re
from importlib import import_module

import numpy as np
import pytest
from course import LECTURE

from seraph_cvx.display.page import write_page

pytestmark = pytest.mark.once
pytest.importorskip("marimo", reason="marimo is not installed: the extra `lecture` brings it")
assert LECTURE.is_dir()  # its helper makes the course importable
drawing, pages = import_module("drawing"), import_module("pages")

HEIGHTS = [0.2, 0.5, 0.9]


def panel(height):
    """A parabola with a gap, and a point on it, on a square from -1 to 1."""
    made = drawing.Panel("A < B", ("x", -1, 1), ("y", 1e-2, 1), {drawing.BLUE: "parabola"}, log="y")
    x = np.linspace(-1, 1, 9)
    made.line(x, np.where(x == 0, np.nan, height * x**2), drawing.BLUE)
    made.dots(0.5, height / 4, drawing.ORANGE, 7)
    return made


def test_a_page_keeps_what_stays_once_and_nan_is_a_gap():
    body = drawing.Moving("Height:", HEIGHTS, 0.5, lambda height: [panel(height)] * 2).body
    data = json.loads(re.search("<script[^>]*>(.*)</script>", body)[1])
    assert data["positions"] == ["0.2", "0.5", "0.9"]
    assert (data["start"], len(data["panels"])) == (1, 3)
    assert len(data["pool"]) == 3 * 3  # a panel, a line and a dot each, not twice
    (shown, again) = data["panels"][2]
    assert shown == again
    line, dot = (data["pool"][k] for k in data["pool"][shown]["marks"])
    assert (line["ys"][4], line["ys"][8]) == (None, 0.9)
    assert (dot["xs"], dot["ys"]) == ([0.5], [0.225])


@pytest.mark.slow
@pytest.mark.parametrize("positions", [HEIGHTS, ["one", "two", "three"]])
def test_a_slider_or_named_tabs_draw_each_position(positions, browser, tmp_path):
    start, file = positions[1], tmp_path / "page.html"
    by_name = dict(zip(positions, HEIGHTS, strict=True))
    made = drawing.Moving("Height:", positions, start, lambda each: [panel(by_name[each])])
    body = f"{pages.to_html(made)}<script>{drawing.SCRIPT}</script>"
    file.write_text(write_page("Page", body, pages.STYLE, pages.POLICY), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    for k, height in enumerate(HEIGHTS):
        if isinstance(start, str):
            page.get_by_label(positions[k], exact=True).check(force=True)
        else:
            page.locator("input").fill(str(k))
            assert page.locator("output").inner_text() == f"{height:g}"
        picture = page.locator("svg[role=img]")
        wanted = f"A < B. y against x. parabola: from {height} to {height}. a dot at 0.5, "
        assert picture.get_attribute("aria-label").startswith(wanted)
        (left, right, bottom, top) = picture.evaluate(
            "svg => { const box = svg.querySelector('clipPath path').getBBox();"
            " return [box.x, box.x + box.width, box.y + box.height, box.y]; }"
        )
        circle = page.locator("circle")
        share = np.log10(height / 4 / 1e-2) / 2
        assert float(circle.get_attribute("cx")) == pytest.approx(
            left + 0.75 * (right - left), 1e-3
        )
        assert float(circle.get_attribute("cy")) == pytest.approx(
            bottom + share * (top - bottom), 1e-3
        )
        (path,) = page.locator("g path").all()
        assert path.get_attribute("d").count("M") == 2  # on both sides of the gap
        names = page.locator("svg text").all_text_contents()
        assert {"10⁻²", "10⁻¹", "10⁰", "−1", "0.5", "parabola"} <= set(names)
    page.close()

"""Whether a reader can read a picture: no text clipped or on top of another, no empty axis."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from matplotlib.text import Text


def drawn_texts(figure):
    """Every text a reader sees; ticks outside the limits of an axis are not drawn."""
    parts = (figure, *figure.subfigs)
    texts = [part._suptitle for part in parts if part._suptitle is not None]
    legends = [legend for part in parts for legend in part.legends]
    for ax in [ax for ax in figure.axes if ax.get_visible()]:
        texts += [ax.title, *ax.texts]
        legends += [ax.get_legend()] if ax.get_legend() else []
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            if not axis.get_visible():
                continue
            texts += [axis.label, axis.get_offset_text()]
            ticks = [t for t in axis.get_major_ticks() if min(limits) <= t.get_loc() <= max(limits)]
            texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
            texts += [tick.label2 for tick in ticks if tick.label2.get_visible()]
    for legend in legends:
        texts += legend.get_texts()
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def box_of(text):
    """Where the letters are, without the arrow of an annotation."""
    return Text.get_window_extent(text)


def assert_legible(figure, at_least=6):
    """At least so many texts, all within the picture, none overlapping; data on every axis."""
    if figure.stale:  # or it has its layout already
        figure.draw_without_rendering()
    boxes = [(text.get_text(), box_of(text)) for text in drawn_texts(figure)]
    assert len(boxes) >= at_least
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    for (one, box), (other, other_box) in combinations(boxes, 2):
        overlap = np.minimum(box.max, other_box.max) - np.maximum(box.min, other_box.min)
        assert overlap.min() <= 1.0, f"{one!r} and {other!r} overlap"
    for ax in figure.axes:
        assert not ax.get_visible() or ax.has_data() or not ax.axison

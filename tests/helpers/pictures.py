"""Whether a picture was drawn."""

from __future__ import annotations

from matplotlib.text import Text


def assert_drawn(figure, at_least=6):
    """It can be laid out without a warning, has so many texts, and data on every axis."""
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert len(texts) >= at_least
    for ax in figure.axes:
        assert not ax.get_visible() or ax.has_data() or not ax.axison

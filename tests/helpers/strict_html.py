"""What notebooks are shown, parsed by a list of what may be in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from seraph_cvx.display.notebook import Tone

MATHML = {
    *("math", "mrow", "mi", "mn", "mo", "mspace", "msqrt"),
    *("mfrac", "msub", "msup", "msubsup", "munder", "mover"),
}
PARENTS = {
    "thead": {"table"}, "tbody": {"table"}, "tr": {"thead", "tbody"}, "td": {"tr"}, "th": {"tr"},
    "table": {"div"}, "div": {"div", None}, "b": {"div"}, "i": {"div"}, "span": {"div"},
    "sub": {"div", "b"}, "sup": {"div", "b"},
    "math": {"div"}, **dict.fromkeys(MATHML - {"math"}, MATHML),
}  # fmt: skip
ATTRIBUTES = {"style", "colspan", "display", "stretchy", "fence", "form", "width", "linethickness"}


class Strict(HTMLParser):
    """Raises at any element, attribute or nesting that is not on the lists above."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.words, self.badges = [], [], []
        self.feed(html)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        parent = self.open[-1] if self.open else None
        assert parent in PARENTS[tag], f"<{tag}> in <{parent}>"
        assert {name for name, _ in attrs} <= ATTRIBUTES
        style = dict(attrs).get("style", "")
        assert not re.search(r"url|import|expression|[<>\"&]", style)
        color = re.search(r"(?<![-a-z])color:|background", style)
        assert not color or tag == "span", f"a color of its own: {style}"
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        assert tag == "mspace", f"<{tag}/> is not HTML"
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_data(self, data):
        if data.strip():
            self.words.append(data)
        if self.open[-1] == "span":
            self.badges.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")

    handle_decl = handle_pi = unknown_decl = handle_comment


def strictly(thing):
    """The parsed output of an object, well-formed as HTML and as XML."""
    html = thing if isinstance(thing, str) else thing._repr_html_()
    ElementTree.fromstring(html)
    return Strict(html)


def verdict(thing):
    """The words and the tone of the badge."""
    html = thing if isinstance(thing, str) else thing._repr_html_()
    (words,) = strictly(html).badges
    colors = re.search(r'<span style="color:(#\w+);background:(#\w+)', html)
    return words, Tone(colors.groups())

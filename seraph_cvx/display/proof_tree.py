"""The tree of a proof that a problem is convex, as text; a subtree is shown once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from .symbols import in_symbols

_SIZE = re.compile(r" \([\d x]+\)$")


def draw_tree(proof: Any, width: int | None = 100) -> str:
    """Draw a proof in lines of at most `width` columns, or in a line for each node.

    A subtree that comes again, up to the sizes of its constants, has its rule and children once.
    """
    return "\n".join(_lines(proof, "", "", width, set()))


def _lines(node: Any, prefix: str, below: str, width: int | None, seen: set[Any]) -> Iterator[str]:
    sign = f", {node.sign}" if node.sign not in ("", "UNKNOWN") else ""
    rule, children, key = node.rule, node.children, _without_sizes(node)
    if children and key in seen:
        rule, children = "as above", ()
    seen.add(key)
    words = f"{node.curvature}{sign} ({rule})"
    text = in_symbols(f"{node.expression}: {words}", letters=False)
    trunk = below + ("│    " if children else "     ")
    yield from textwrap.wrap(
        text,
        len(prefix + text) if width is None else max(width, len(trunk) + 30),
        initial_indent=prefix,
        subsequent_indent=trunk,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for k, child in enumerate(children, 1):
        sign, trunk = ("└─ ", "   ") if k == len(children) else ("├─ ", "│  ")
        yield from _lines(child, below + sign, below + trunk, width, seen)


def _without_sizes(node: Any) -> tuple[Any, ...]:
    below = tuple(map(_without_sizes, node.children))
    return (_SIZE.sub("", node.expression), node.curvature, node.sign, node.rule, below)

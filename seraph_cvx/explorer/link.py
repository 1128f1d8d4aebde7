"""A snapshot as a line of text, which ends the page's address and restores the scene from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from ..numerics.checks import UNKNOWN
from .point_sets import SCENES, scene_named
from .scene import MOST_POINTS, Scene
from .sliders import SEEDS, SLIDERS
from .snapshot import Snapshot
from .stepwise_alternation import MOST_ITERATIONS, Settings

LETTERS = {
    "mu": "weight_factor",
    "lambda": "trace_weight",
    "eta": "threshold",
    "a": "own_sharpness",
}
"""What the link calls the sliders."""

PARTS = ("data", "seed", *LETTERS, "sharpness", "step", "point", "removed", "added", "labels")
LABELS = "012."
FURTHEST = 1e4
"""No point of a link is further away than this."""


def link_of(now: Snapshot) -> str:
    """Write a snapshot as text: the data and its seed, what was changed, the sliders, the step.

    Examples
    --------
    >>> link_of(Snapshot(position=3))
    'data=stripes&seed=0&mu=1.0&lambda=1.0&eta=1.0&a=2.0&sharpness=paper&step=3&point=0'
    """
    scene, settings = now.scene, now.settings
    kept, added = changes_of(now)
    base = scene_named(now.source, now.seed)
    parts: dict[str, object] = {"data": now.source, "seed": now.seed}
    parts |= {letter: getattr(settings, name) for letter, name in LETTERS.items()}
    parts["sharpness"] = "paper" if settings.paper_sharpness else "own"
    parts |= {"step": now.position, "point": scene.chosen}
    if gone := sorted(set(range(len(base.points))) - set(kept)):
        parts["removed"] = ",".join(map(str, gone))
    if added:
        parts["added"] = ";".join(f"{x!r},{y!r}" for x, y in added)
    if scene.labels != _first_labels(base, kept, len(added)):
        parts["labels"] = "".join(LABELS[label] for label in scene.labels)
    return urlencode(parts, safe=",;")


def read_link(text: str) -> Snapshot:
    """Read what :func:`link_of` wrote, also at the end of an address, after its ``#``.

    Raises
    ------
    ValueError
        In words, where a part is unknown or none that the page can set.

    Examples
    --------
    >>> now = read_link("http://127.0.0.1:2718/#data=rings&lambda=0.5")
    >>> now.source, now.settings.trace_weight
    ('rings', 0.5)
    """
    parts = dict(parse_qsl(text.rpartition("#")[2], keep_blank_values=True))
    if not parts or not set(parts) <= set(PARTS):
        raise ValueError(f"The link has the parts {[*parts]}; it may have {', '.join(PARTS)}.")
    default = Snapshot()
    source = _one_of(parts, "data", list(SCENES), default.source)
    seed = _one_of(parts, "seed", SEEDS, default.seed)
    values = {
        name: _one_of(parts, letter, SLIDERS[name].stops, getattr(default.settings, name))
        for letter, name in LETTERS.items()
    }
    is_paper = _one_of(parts, "sharpness", ("paper", "own"), "paper") == "paper"
    position = _one_of(parts, "step", range(2 * MOST_ITERATIONS), 0)
    scene = _changed(scene_named(source, seed), parts)
    return Snapshot(source, seed, scene, Settings(**values, paper_sharpness=is_paper), position)


def changes_of(now: Snapshot) -> tuple[list[int], tuple[tuple[float, float], ...]]:
    """The points that are left of the scene as it was drawn, by number, and those that were added.

    Examples
    --------
    >>> now = Snapshot()
    >>> kept, added = changes_of(replace(now, scene=now.scene.without(3)))
    >>> len(kept), 3 in kept, added
    (99, False, ())
    """
    points = now.scene.points
    kept: list[int] = []
    for k, point in enumerate(scene_named(now.source, now.seed).points):
        if len(kept) < len(points) and points[len(kept)] == point:
            kept.append(k)
    return kept, points[len(kept) :]


def _changed(base: Scene, parts: Mapping[str, str]) -> Scene:
    """The scene with the points of a link removed and added, and its labels."""
    everyone = range(len(base.points))
    gone = [_one_of({"removed": k}, "removed", everyone) for k in _split(parts, "removed", ",")]
    kept = [k for k in everyone if k not in gone]
    added = [_point(text) for text in _split(parts, "added", ";")]
    points = (*(base.points[k] for k in kept), *added)
    labels = _first_labels(base, kept, len(added))
    signs = parts.get("labels", "." * len(points))
    if len(points) > MOST_POINTS or len(signs) != len(points) or set(signs) - set(LABELS):
        raise ValueError(
            f"The link has {len(points)} points and {len(signs)} labels: it takes up to "
            f"{MOST_POINTS} points, and for each a sign of {LABELS!r}."
        )
    if "labels" in parts:
        labels = tuple(UNKNOWN if sign == "." else int(sign) for sign in signs)
    chosen = _one_of(parts, "point", range(max(1, len(points))), 0)
    classes = tuple(base.classes[k] for k in kept)
    return replace(base, points=points, labels=labels, classes=classes, chosen=chosen)


def _first_labels(base: Scene, kept: Sequence[int], n_added: int) -> tuple[int, ...]:
    return (*(base.labels[k] for k in kept), *(UNKNOWN,) * n_added)


def _split(parts: Mapping[str, str], name: str, mark: str) -> list[str]:
    return [text for text in parts.get(name, "").split(mark) if text]


def _point(text: str) -> tuple[float, float]:
    with suppress(ValueError):
        x, y = map(float, text.split(","))
        if max(abs(x), abs(y)) <= FURTHEST and x == x and y == y:
            return x, y
    raise ValueError(f"The link adds the point {text!r}, not two numbers up to {FURTHEST:g}.")


def _one_of(
    parts: Mapping[str, str], name: str, allowed: Sequence[Any], default: Any = None
) -> Any:
    """The one of `allowed`, words or numbers, that a part of the link names."""
    if name not in parts:
        return default
    text = parts[name]
    with suppress(ValueError):
        for value in allowed:
            if value == (text if isinstance(value, str) else float(text)):
                return value
    first, last = (allowed[0], allowed[-1]) if allowed else ("nothing", "nothing")
    raise ValueError(f"The link's {name} is {text!r}, which is no stop from {first} to {last}.")

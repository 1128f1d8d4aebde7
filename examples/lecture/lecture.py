"""What the chapters share: typeset formulas, proved numbers with so many digits, and irises."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from html import escape
from pathlib import Path

import marimo as mo
import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from seraph_cvx.display import formulas as of_the_package
from seraph_cvx.display.formulas import Formula
from seraph_cvx.display.symbols import prose

CARD = "overflow-x:auto;overflow-y:hidden;border-left:4px solid #93c5fd;padding-left:.8rem"


COMPUTED_BY = {
    "The probability of a pair's label": "posterior",
    "The objective": "simplified_objective",
    "The M-step": "m_step",
    "The E-step": "e_step",
}
"""The functions of `seraph_cvx/paper.py` that compute the numbered formulas."""


def read_formulas() -> dict[str, Formula]:
    """The formulas of the package and those of `formulas.txt`, by their keys."""
    text = Path(__file__).with_name("formulas.txt").read_text(encoding="utf-8")
    written = r"^## (\w+): (.+?)(?: (\(\d+\)))?\n((?:(?!where ).+\n)+)(?:where (.+)\n)?"
    found = {key: Formula(*parts) for key, *parts in re.findall(written, text, re.M)}
    return found | vars(of_the_package)


FORMULAS = read_formulas()


def formulas(*keys: str) -> mo.Html:
    """Formulas, each under its name; `data-latex` is for Jupyter."""
    cards = []
    for each in map(FORMULAS.__getitem__, keys):
        latex = escape(each.latex.strip().replace("\n", "$$ $$"), quote=True)
        math = each.mathml.replace("<math ", '<math style="padding:.4rem 0" ')
        has_sets = "pairs" in each.where  # then S, D and U are those of the paper, F and L too
        where = f"<small>{prose(each.where, has_sets)}</small>" if each.where else ""
        cards.append(
            f'<div class="formula" data-latex="$${latex}$$" style="{CARD}" tabindex="0"><b>'
            f"{escape(each.title)}</b>{_in_python(each.name)}{math}{where}</div>"
        )
    return mo.Html("".join(cards))


def _in_python(name: str) -> str:
    function = COMPUTED_BY.get(name)
    return f", in Python <code>seraph_cvx.paper.{function}</code>" if function else ""


def floor(value: float, digits: int) -> str:
    """So many digits of a number, rounded down: what is printed of a lower bound still is one."""
    return _rounded(value, digits, ROUND_FLOOR)


def ceiling(value: float, digits: int) -> str:
    """So many digits of a number, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, rounding: str) -> str:
    decimal = Context(digits, rounding).create_decimal_from_float(value)
    return f"{float(decimal) + 0.0:.{digits}g}".replace("inf", "∞").replace("-", "−")


def enclosure(lower: float, upper: float, digits: int) -> str:
    """A proved interval with so many digits, rounded outward."""
    return f"[{floor(lower, digits)}, {ceiling(upper, digits)}]"


def some_irises(every: int = 3, standardized: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Every third iris, 50 in all; three of each kind with a label, the others with -1."""
    points, kinds = load_iris(return_X_y=True)
    points, kinds = points[::every], kinds[::every]
    labels = np.full(len(points), -1)
    for kind in range(3):
        found = np.flatnonzero(kinds == kind)
        labels[found[:: -(-len(found) // 3)]] = kind
    return StandardScaler().fit_transform(points) if standardized else points, labels

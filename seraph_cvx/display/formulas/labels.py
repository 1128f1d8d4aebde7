"""Typesets the labels of a CVXPY statement."""

from __future__ import annotations

import re
from html import escape

from ..mathml import to_mathml

LATEX = {
    "sum_SD": r"\sum_{\mathcal{S} \cup \mathcal{D}}",
    "sum_D": r"\sum_{\mathcal{D}}",
    "sum_U": r"\sum_{\mathcal{U}}",
    "log": r"\ln",
    "lambda": r"\lambda",
    "beta": r"\beta",
    "eta": r"\eta",
    "mu": r"\mu",
    "tr": r"\operatorname{tr}",
    "v'Av": r"v^\top A v",
    "<": r"\langle",
    ">": r"\rangle",
}
"""What the words in the labels of a CVXPY statement stand for."""

WORD = re.compile(r"sum_SD|sum_[DU]|v'Av|[A-Za-z]+|[<>]")


def typeset(label: str) -> str:
    """Typeset a label of a CVXPY statement if it is a formula, else escape it.

    Examples
    --------
    >>> "<mi>η</mi><mi>β</mi>" in typeset("eta beta"), typeset("entries of A")
    (True, 'entries of A')
    """
    if re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", label):
        return f"{float(label):.4g}"
    words = WORD.findall(label)
    is_code = "@" in label or any(len(word) > 1 and word not in LATEX for word in words)
    if not words or is_code:
        return escape(label)
    latex = WORD.sub(lambda found: LATEX.get(found[0], found[0]) + " ", label)
    return to_mathml(latex, inline=True)

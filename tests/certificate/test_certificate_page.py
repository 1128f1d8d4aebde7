"""Evidence: the page on certificates names the constants that the code has, with their values."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from seraph_cvx.engine import distances
from seraph_cvx.proof import rounding
from seraph_cvx.proof.rounding import UNIT

PAGE = Path(__file__).parents[2] / "examples" / "guide" / "certificate.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", TEXT, flags=re.M)


def value_of(words):
    """24, 16 u, 10 ln 2, 2^-53 as numbers, in LaTeX or not."""
    words = re.sub(r"[\\${}]", "", words).strip()
    if words.endswith(" ln 2"):
        return float(words[:-5]) * math.log(2.0)
    if words.endswith(" u"):
        return float(words[:-2]) * UNIT
    base, _, exponent = words.partition("^")
    return float(base) ** float(exponent) if exponent else float(base)


@pytest.mark.parametrize(("name", "words"), ROWS)
def test_each_constant_of_the_page_is_in_the_code(name, words):
    holder = rounding if hasattr(rounding, name) else distances
    assert getattr(holder, name) == value_of(words)


def test_each_constant_of_the_code_is_on_the_page():
    constants = {name for name in vars(rounding) if name.isupper()}
    assert constants <= {name for name, _ in ROWS}, constants - {name for name, _ in ROWS}

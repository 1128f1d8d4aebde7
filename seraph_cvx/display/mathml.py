"""Formulas, written in LaTeX, as MathML.

Chromium, Firefox and Safari render MathML by themselves, so that a page or a notebook needs no
network and no script.
"""

from __future__ import annotations

import re

FONTS = "'STIX Two Math','Cambria Math','Latin Modern Math','DejaVu Math TeX Gyre',math"
"""Fonts that know how brackets stretch: browsers do not look for one by themselves."""
THIN = '<mspace width="0.17em"></mspace>'
"""TeX's thin space, a sixth of an em."""
GAP = '<mspace width="0.28em"></mspace>'
"""The space around words of a sentence."""


def to_mathml(latex: str, inline: bool = False) -> str:
    """Convert a formula to a ``<math>`` element, on a line of its own or within a sentence."""
    from latex2mathml.converter import convert

    latex = re.sub(r"\\(sum|min|max|sup|inf)(?=_)", r"\\\1\\limits", latex)
    latex = re.sub(r"\\arg\b", r"\\operatorname{arg} ", latex)  # the library has no such command
    latex = re.sub(r"\\(phi|epsilon)(?![A-Za-z])", r"\\var\1", latex)  # as in our prose
    markup = convert(latex, display="inline" if inline else "block")
    markup = markup.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    markup = markup.replace("<mrow>", f'<mrow style="font-family:{FONTS}">', 1)
    # The library takes ⪰, ≻, : and ; for letters, and leaves no space around words such as ln.
    markup = re.sub(r"<mi>(&#x0(?:2AB0|227B|003A|003B);)</mi>", r"<mo>\1</mo>", markup)
    # Bars beside letters are brackets: neither taller than others nor with spaces as around "=".
    bar = '<mo stretchy="false" lspace="0" rspace="0">'
    markup = re.sub(r"<mo>(?=&#x0(?:007C|2016);)", bar, markup)
    word = r"<m[io]>((?!min|max|sup|inf)[A-Za-z]{2,})</m[io]>"
    markup = re.sub(word, rf"<mrow>{THIN}<mi>\1</mi>{THIN}</mrow>", markup)
    sentence = r"(<mi>(?:for|all|with|and|or|there|are|reachable)</mi>)"
    markup = re.sub(f"{THIN}{sentence}{THIN}", rf"{GAP}\1{GAP}", markup)
    return markup.replace(f"{GAP}</mrow><mrow>{GAP}", f"{GAP}</mrow><mrow>")

"""Formulas, written in LaTeX, as MathML and as plain text.

Chromium, Firefox and Safari render MathML by themselves, so that a page or a notebook needs no
network and no script.
"""

from __future__ import annotations

import re

from .symbols import SCRIPTS

FONTS = "'STIX Two Math','Cambria Math','Latin Modern Math','DejaVu Math TeX Gyre',math"
"""Fonts that know how brackets stretch: browsers do not look for one by themselves."""
THIN = '<mspace width="0.17em"></mspace>'
"""TeX's thin space, a sixth of an em."""


def to_mathml(latex: str, inline: bool = False) -> str:
    """Convert a formula to a ``<math>`` element, on a line of its own or within a sentence."""
    from latex2mathml.converter import convert

    latex = re.sub(r"\\(sum|min|max|sup|inf)(?=_)", r"\\\1\\limits", latex)
    markup = convert(_known(latex), display="inline" if inline else "block")
    markup = markup.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    markup = markup.replace("<mrow>", f'<mrow style="font-family:{FONTS}">', 1)
    # The library takes ⪰, ≻, : and ; for letters, and leaves no space around words such as ln.
    markup = re.sub(r"<mi>(&#x0(?:2AB0|227B|003A|003B);)</mi>", r"<mo>\1</mo>", markup)
    word = r"<m[io]>((?!min|max|sup|inf)[A-Za-z]{2,})</m[io]>"
    return re.sub(word, rf"<mrow>{THIN}<mi>\1</mi>{THIN}</mrow>", markup)


def to_text(latex: str) -> str:
    """Convert a formula to a line of plain text."""
    text = re.sub(r"\\mathcal\{(.)\}", lambda found: SCRIPTS[found[1]], _known(latex))
    text = re.sub(r"\\(?:left|right)\b", "", text).replace("'", "′")
    before = ""
    while text != before:  # the innermost braces first
        before = text
        text = re.sub(r"(\\operatorname|\\hat|\\sqrt|[_^])\{([^{}]*)\}", _grouped, text)
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", _fraction, text)
    text = re.sub(r"\\([A-Za-z]+|.)", _symbol, re.sub("[{}]", "", text))
    text = re.sub(r" +([,⟩])", r"\1", re.sub(r"⟨ +", "⟨", text))
    return re.sub("   +", "  ", text).translate({ord("⟦"): "{", ord("⟧"): "}"}).strip()


def _known(latex: str) -> str:
    """Commands that the library has, and the shapes of letters that our prose has."""
    latex = re.sub(r"\\arg\b", r"\\operatorname{arg} ", latex)
    return re.sub(r"\\(phi|epsilon)(?![A-Za-z])", r"\\var\1", latex)


def _grouped(found: re.Match[str]) -> str:
    """What a command or a script makes of a group."""
    command, inside = found.groups()
    if command == r"\operatorname":
        return str(inside)
    if command == r"\hat":
        return f"{inside}\u0302"
    if command == "_":
        return "_" + (inside if re.fullmatch(r"\w+|\\\w+", inside) else f"⟦{inside}⟧")
    return ("√" if command == r"\sqrt" else "^") + _in_brackets(inside)


def _fraction(found: re.Match[str]) -> str:
    """A fraction on one line."""
    return "/".join(map(_in_brackets, found.groups()))


def _in_brackets(text: str) -> str:
    """A text in brackets, unless it is a number or a letter."""
    return text if re.fullmatch(r"\\?[^\W_]+|.\u0302|-\d", text) else f"({text})"


def _symbol(found: re.Match[str]) -> str:
    """The character of a command; a word where it has none."""
    from latex2mathml.symbols_parser import convert_symbol

    if found[1] == "quad":
        return "  "
    code = convert_symbol(found[0])
    return found[1] if code is None else chr(int(code, 16))

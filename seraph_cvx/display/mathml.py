"""Converts a small subset of LaTeX to MathML and to plain text.

Chromium, Firefox and Safari render MathML by themselves, so that a page or a notebook needs no
network and no script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|[a-zA-Z]|\S")

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "sigma": "σ", "top": "⊤", "#": "#", "emptyset": "∅", "nabla": "∇",
    "dots": "…", "tau": "τ", "delta": "δ", "theta": "θ", "phi": "φ", "Phi": "Φ", "ell": "ℓ",
}  # fmt: skip
OPERATORS = {
    "leq": "≤", "geq": "≥", "neq": "≠", "in": "∈", "cup": "∪", "succeq": "⪰", "succ": "≻",
    "Rightarrow": "⇒", "Leftrightarrow": "⇔", "langle": "⟨", "rangle": "⟩", "|": "‖", "quad": "  ",
    "leftarrow": "←", "circ": "∘",
}  # fmt: skip
WORDS = {"ln", "exp", "log", "arg"}
LIMITS = {"sum": "∑", "min": "min", "max": "max", "sup": "sup", "inf": "inf"}
SCRIPTS = {"S": "𝒮", "D": "𝒟", "U": "𝒰", "F": "ℱ", "L": "ℒ", "X": "𝒳", "O": "𝒪"}
BRACKETS = {")": "(", "]": "[", "⟩": "⟨"}
BARS = "|‖"
FONTS = "'STIX Two Math','Cambria Math','Latin Modern Math','DejaVu Math TeX Gyre',math"
"""Fonts that know how brackets stretch: browsers do not look for one by themselves."""


@dataclass(frozen=True)
class Node:
    """A piece of a formula: a leaf with its text, or a form with its parts."""

    kind: str
    text: str = ""
    parts: tuple[Node, ...] = ()


def to_mathml(latex: str, inline: bool = False) -> str:
    """Convert a formula to a ``<math>`` element, on a line of its own or within a sentence.

    Examples
    --------
    >>> to_mathml(r"x^2").partition("<msup>")[2]
    '<mi>x</mi><mn>2</mn></msup></mrow></math>'
    """
    display = "inline" if inline else "block"
    inside = f'<mrow style="font-family:{FONTS}">{_mathml(parse(latex))}</mrow>'
    return f'<math display="{display}">{inside}</math>'


def to_text(latex: str) -> str:
    r"""Convert a formula to a line of plain text.

    Examples
    --------
    >>> to_text(r"\frac{a+b}{2} \leq \lambda_1"), to_text(r"E[-\ln p] = -\eta")
    ('(a + b)/2 ≤ λ_1', 'E[-ln p] = -η')
    """
    text = re.sub(r"  +", "  ", _text(parse(latex))).strip()
    text = re.sub(r"\b(ln|log|arg) \(", r"\1(", text)
    text = re.sub(r"(^|[(\[{/]) *- ", r"\1-", text)  # a minus with nothing before it
    text = re.sub(r"((?:min|max|sup|inf)_(?:\{[^}]*\}|\S+)) +- ", r"\1 -", text)
    return re.sub(r"([=≤≥⇒⇔]) *- ", r"\1 -", text)


def parse(latex: str) -> Node:
    """Parse a formula into a tree; an unknown command is an error."""
    tokens = TOKEN.findall(latex)
    row, rest = _row(tokens, 0)
    if rest != len(tokens):
        raise ValueError(f"The formula {latex!r} closes a brace that it did not open.")
    return row


def _row(tokens: list[str], at: int) -> tuple[Node, int]:
    parts: list[Node] = []
    while at < len(tokens) and tokens[at] != "}":
        node, at = _with_scripts(tokens, at)
        parts.append(node)
    parts = _fenced(parts)
    return (parts[0] if len(parts) == 1 else Node("row", "", tuple(parts))), at


def _fenced(parts: list[Node]) -> list[Node]:
    """Group each pair of brackets with what is between them: both are as high as that."""
    out: list[Node] = []
    for node in parts:
        base = node.parts[0] if node.kind in ("sub", "sup", "subsup") else node
        start = _opening(out, base.text) if base.kind == "mo" else None
        if start is None:
            out.append(node)
            continue
        fence = Node("fence", "", (*out[start:], base))
        whole = fence if base is node else Node(node.kind, "", (fence, *node.parts[1:]))
        out[start:] = [whole]
    return out


def _opening(parts: list[Node], sign: str) -> int | None:
    """Where the bracket was opened that `sign` closes; None if it closes none."""
    for k in range(len(parts) - 1, -1, -1):
        text = parts[k].text if parts[k].kind == "mo" else ""
        if text and text == BRACKETS.get(sign, sign if sign in BARS else ""):
            return k
        if sign in BARS and text in BRACKETS.values():
            return None
    return None


def _with_scripts(tokens: list[str], at: int) -> tuple[Node, int]:
    node, at = _atom(tokens, at)
    below: Node | None = None
    above: Node | None = None
    while at < len(tokens) and tokens[at] in "_^'":
        if tokens[at] == "'":
            above, at = Node("mo", "′"), at + 1
            continue
        mark = tokens[at]
        script, at = _atom(tokens, at + 1)
        below, above = (script, above) if mark == "_" else (below, script)
    if node.kind == "limits":
        return (Node("under", "", (node, below)) if below else node), at
    if below and above:
        return Node("subsup", "", (node, below, above)), at
    if below:
        return Node("sub", "", (node, below)), at
    return (Node("sup", "", (node, above)) if above else node), at


def _atom(tokens: list[str], at: int) -> tuple[Node, int]:
    token = tokens[at]
    if token == "{":
        row, at = _row(tokens, at + 1)
        return row, at + 1
    if token.startswith("\\"):
        return _command(tokens, at)
    if token[0].isdigit():
        return Node("mn", token), at + 1
    return Node("mi" if token.isalpha() else "mo", token), at + 1


def _command(tokens: list[str], at: int) -> tuple[Node, int]:
    name = tokens[at][1:]
    if name == "frac":
        top, at = _atom(tokens, at + 1)
        bottom, at = _atom(tokens, at)
        return Node("frac", "", (top, bottom)), at
    if name in ("sqrt", "hat"):
        inside, at = _atom(tokens, at + 1)
        return Node(name, "", (inside,)), at
    if name in ("mathcal", "operatorname"):
        end = tokens.index("}", at)
        word = "".join(tokens[at + 2 : end])
        return Node("mi", SCRIPTS[word]) if name == "mathcal" else Node("word", word), end + 1
    tables: tuple[tuple[str, dict[str, str]], ...] = (
        ("mi", LETTERS), ("mo", OPERATORS), ("limits", LIMITS), ("word", {w: w for w in WORDS}),
    )  # fmt: skip
    for kind, table in tables:
        if name in table:
            return Node("space" if name == "quad" else kind, table[name]), at + 1
    raise ValueError(f"The command \\{name} is not in this subset of LaTeX.")


_TAGS = {
    "row": "mrow", "frac": "mfrac", "sqrt": "msqrt", "sub": "msub", "sup": "msup",
    "subsup": "msubsup", "under": "munder",
}  # fmt: skip
_THIN = '<mspace width="0.17em"></mspace>'


def _mathml(node: Node) -> str:
    inside = _mathml_of(node.parts) if node.kind == "row" else "".join(map(_mathml, node.parts))
    if node.kind in _TAGS:
        return f"<{_TAGS[node.kind]}>{inside}</{_TAGS[node.kind]}>"
    if node.kind == "fence":
        return f"<mrow>{_mathml_of_fence(node)}</mrow>"
    if node.kind == "hat":
        return f'<mover accent="true">{inside}<mo stretchy="false">^</mo></mover>'
    if node.kind == "tall":
        return f"<mo>{escape(node.text)}</mo>"
    if node.kind == "space":
        return '<mspace width="2em"></mspace>'
    if node.kind == "mo" and node.text in "()|‖⟨⟩[]":
        return f'<mo stretchy="false">{escape(node.text)}</mo>'
    if node.kind == "limits":
        size = ' mathsize="1.35em"' if node.text == "∑" else ""
        return f"<mo{size}>{escape(node.text)}</mo>"
    if node.kind == "word":
        return f"<mrow>{_THIN}<mi>{escape(node.text)}</mi></mrow>"
    return f"<{node.kind}>{escape(node.text.replace('-', '−'))}</{node.kind}>"


def _mathml_of(parts: Sequence[Node]) -> str:
    """Write the parts of a row; a minus with nothing before it is a sign, with no space after."""
    out = ""
    for k, part in enumerate(parts):
        before = parts[k - 1] if k else Node("space")
        is_sign = before.kind in ("space", "under", "limits") or before.text in tuple("([,=≤≥⇒⇔")
        lone = part == Node("mo", "-") and is_sign
        out += _THIN if before.kind == "word" and not _is_sign(part) else ""
        is_function = part.kind == "limits" and part.text != "∑"  # max(a, b), without limits
        plain = f"<mi>{part.text}</mi>" if is_function else _mathml(part)
        out += '<mo form="prefix">−</mo>' if lone else plain
    return out


def _mathml_of_fence(node: Node) -> str:
    """Write brackets that stretch where a fraction is between them."""
    first, *inside, last = node.parts
    if any(map(_is_tall, inside)):
        first, last = Node("tall", first.text), Node("tall", last.text)
    return _mathml_of([first, *inside, last])


def _is_tall(node: Node) -> bool:
    """Whether there is a fraction in it, but for its scripts."""
    parts = node.parts[:1] if node.kind in ("sub", "sup", "subsup", "under") else node.parts
    return node.kind == "frac" or any(map(_is_tall, parts))


def _text(node: Node) -> str:
    forms: dict[str, Callable[[list[str]], str]] = {
        "frac": lambda p: f"{_grouped(p[0])}/{_divisor(p[1], node.parts[1])}",
        "sqrt": lambda p: f"√{_grouped(p[0])}",
        "sub": lambda p: f"{p[0]}_{_grouped(p[1], '{}')}",
        "sup": lambda p: p[0] + p[1] if p[1] == "′" else f"{p[0]}^{_raised(p[1])}",
        "subsup": lambda p: f"{p[0]}_{_grouped(p[1], '{}')}^{_raised(p[2])}",
        "under": lambda p: f"{p[0]}_{_grouped(p[1], '{}')} ",
        "hat": lambda p: p[0] + "̂",
        "row": lambda p: _joined(p, node.parts),
        "fence": lambda p: _joined(p, node.parts),
        "space": lambda p: "  ",
    }
    if node.kind in forms:
        return forms[node.kind]([_text(part) for part in node.parts])
    if node.text in "=+-≤≥≠⪰≻⇒⇔∈<>←∘|" and node.text != "|":
        return f" {node.text} "
    return node.text + (" " if node.text in WORDS - {"exp"} or node.text == "," else "")


def _joined(texts: list[str], parts: tuple[Node, ...]) -> str:
    """Join the parts of a row, with spaces around words, after indexed letters and fractions."""
    out = ""
    for k, text in enumerate(texts):
        before = parts[k - 1].kind if k else "mo"
        is_word = "word" in (before, parts[k].kind) and before != "mo"
        crowded = is_word or before in ("sub", "subsup", "frac")
        is_apart = not crowded or _is_sign(parts[k]) or out.endswith(" ")
        out += text if is_apart else f" {text}"
    return out


def _divisor(text: str, node: Node) -> str:
    """What is divided by: in brackets unless it is one symbol, with scripts or without."""
    base = node.parts[0] if node.kind in ("sub", "sup", "subsup") else node
    return _grouped(text) if base.kind in ("mi", "mn", "hat", "fence") else f"({text.strip()})"


def _is_sign(node: Node) -> bool:
    """Whether it begins with an operator or a bracket."""
    base = node.parts[0] if node.kind in ("sub", "sup", "subsup") else node
    return node.kind == "mo" or base.kind == "fence"


def _raised(text: str) -> str:
    return f"({text})" if "_" in text else _grouped(text)


def _grouped(text: str, brackets: str = "()") -> str:
    text = text.strip()
    simple = re.fullmatch(r"[\w⊤′…̂*]+|-\w", text)
    return text if simple else f"{brackets[0]}{text}{brackets[1]}"

"""Converts a small subset of LaTeX to MathML and to plain text.

Chromium, Firefox and Safari render MathML by themselves, so that a page or a notebook needs no
network and no script. By hand, because cards in notebooks need it with the core dependencies
alone, and plain text in step with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

TOKEN = re.compile(
    r"\\(?:mathcal|operatorname)\{[^}]*\}|\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|[a-zA-Z]|\S"
)

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "eta": "η", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "sigma": "σ", "top": "⊤", "#": "#", "emptyset": "∅", "nabla": "∇",
    "dots": "…", "tau": "τ", "delta": "δ", "theta": "θ", "phi": "φ", "Phi": "Φ", "ell": "ℓ",
    "epsilon": "ε", "zeta": "ζ", "omega": "ω", "rho": "ρ", "psi": "ψ", "chi": "χ", "Lambda": "Λ",
    "Delta": "Δ",
}  # fmt: skip
OPERATORS = {
    "leq": "≤", "geq": "≥", "neq": "≠", "in": "∈", "cup": "∪", "succeq": "⪰", "succ": "≻",
    "Rightarrow": "⇒", "Leftrightarrow": "⇔", "langle": "⟨", "rangle": "⟩", "|": "‖", "quad": "  ",
    "leftarrow": "←", "circ": "∘", "to": "→",
}  # fmt: skip
WORDS = {"ln", "exp", "log", "arg"}
LIMITS = {"sum": "∑", "min": "min", "max": "max", "sup": "sup", "inf": "inf"}
SCRIPTS = {
    "S": "𝒮", "D": "𝒟", "U": "𝒰", "F": "ℱ", "L": "ℒ", "X": "𝒳", "O": "𝒪", "K": "𝒦",
    "E": "ℰ", "Q": "𝒬",
}  # fmt: skip
BRACKETS = {")": "(", "]": "[", "⟩": "⟨", "|": "|", "‖": "‖"}
FONTS = "'STIX Two Math','Cambria Math','Latin Modern Math','DejaVu Math TeX Gyre',math"
"""Fonts that know how brackets stretch: browsers do not look for one by themselves."""


COMMANDS = (
    {name: ("mi", sign) for name, sign in LETTERS.items()}
    | {name: ("mo", sign) for name, sign in OPERATORS.items()}
    | {name: ("limits", sign) for name, sign in LIMITS.items()}
    | {name: ("word", name) for name in WORDS}
    | {"quad": ("space", "  ")}
)
"""The kind and the text of each command without arguments."""

N_ARGUMENTS = {"frac": 2, "sqrt": 1, "hat": 1}
SCRIPTED = ("sub", "sup", "subsup")
RELATIONS = "=+-≤≥≠⪰≻⇒⇔∈<>←→∘"


@dataclass(frozen=True)
class Node:
    """A piece of a formula: a leaf with its text, or a form with its parts."""

    kind: str
    text: str = ""
    parts: tuple[Node, ...] = ()

    @property
    def base(self) -> Node:
        """What carries the scripts; the node itself where there are none."""
        return self.parts[0] if self.kind in SCRIPTED else self

    @property
    def is_sign(self) -> bool:
        """Whether it begins with an operator or a bracket."""
        return self.kind == "mo" or self.base.kind == "fence"

    @property
    def is_tall(self) -> bool:
        """Whether there is a fraction in it, but for its scripts."""
        parts = self.parts[:1] if self.kind in (*SCRIPTED, "under") else self.parts
        return self.kind == "frac" or any(part.is_tall for part in parts)


def to_mathml(latex: str, inline: bool = False) -> str:
    """Convert a formula to a ``<math>`` element, on a line of its own or within a sentence."""
    display = "inline" if inline else "block"
    inside = f'<mrow style="font-family:{FONTS}">{_mathml(parse(latex))}</mrow>'
    return f'<math display="{display}">{inside}</math>'


def to_text(latex: str) -> str:
    """Convert a formula to a line of plain text."""
    text = re.sub(r"  +", "  ", _text(parse(latex))).strip()
    text = re.sub(r"\b(ln|log|arg) \(", r"\1(", text)
    text = re.sub(r"(^|[(\[{/]) *- ", r"\1-", text)  # a minus with nothing before it
    text = re.sub(r"((?:min|max|sup|inf)_(?:\{[^}]*\}|\S+)) +- ", r"\1 -", text)
    return re.sub(r"([=≤≥⇒⇔]) *- ", r"\1 -", text)


def parse(latex: str) -> Node:
    """Parse a formula into a tree; an unknown command is an error."""
    tokens = TOKEN.findall(latex)[::-1]
    row = _row(tokens)
    if tokens:
        raise ValueError(f"The formula {latex!r} closes a brace that it did not open.")
    return row


def _row(tokens: list[str]) -> Node:
    """Take tokens, the next one last, up to a closing brace."""
    parts: list[Node] = []
    while tokens and tokens[-1] != "}":
        node = _scripted(tokens)
        base = node.base
        start = _opening(parts, base)
        if start is not None:  # both brackets are as high as what is between them
            fence = Node("fence", "", (*parts[start:], base))
            node = fence if base is node else Node(node.kind, "", (fence, *node.parts[1:]))
            del parts[start:]
        parts.append(node)
    return parts[0] if len(parts) == 1 else Node("row", "", tuple(parts))


def _opening(parts: list[Node], closing: Node) -> int | None:
    """Where the bracket was opened that a node closes; None if it closes none."""
    opening = BRACKETS.get(closing.text)
    for k in reversed(range(len(parts))) if opening else ():
        if parts[k] == Node("mo", opening or ""):
            return k
        if opening == closing.text and parts[k].text in ("(", "[", "⟨"):
            return None
    return None


def _scripted(tokens: list[str]) -> Node:
    node, scripts = _atom(tokens), {}
    while tokens and tokens[-1] in "_^'":
        mark = tokens.pop()
        script = Node("mo", "′") if mark == "'" else _atom(tokens)
        scripts["sub" if mark == "_" else "sup"] = script
    if not scripts:
        return node
    kind = "under" if node.kind == "limits" else "".join(sorted(scripts))
    return Node(kind, "", (node, *(scripts[name] for name in sorted(scripts))))


def _atom(tokens: list[str]) -> Node:
    token = tokens.pop()
    if token == "{":
        row = _row(tokens)
        tokens.pop()
        return row
    if token[0] != "\\":
        return Node("mn" if token[0].isdigit() else "mi" if token.isalpha() else "mo", token)
    name, _, word = token[1:].rstrip("}").partition("{")
    if word:
        return Node("mi", SCRIPTS[word]) if name == "mathcal" else Node("word", word)
    if name in N_ARGUMENTS:
        return Node(name, "", tuple(_atom(tokens) for _ in range(N_ARGUMENTS[name])))
    if name not in COMMANDS:
        raise ValueError(f"The command \\{name} is not in this subset of LaTeX.")
    return Node(*COMMANDS[name])


_THIN = '<mspace width="0.17em"></mspace>'
_ELEMENTS = {
    "row": "mrow", "fence": "mrow", "frac": "mfrac", "sqrt": "msqrt", "sub": "msub", "sup": "msup",
    "subsup": "msubsup", "under": "munder", "limits": "mo",
}  # fmt: skip
_SPECIAL = {
    "hat": '<mover accent="true">{}<mo stretchy="false">^</mo></mover>',
    "space": '<mspace width="2em"></mspace>',
    "word": f"<mrow>{_THIN}<mi>{{}}</mi></mrow>",
    "∑": '<mo mathsize="1.35em">{}</mo>',
    **dict.fromkeys("()|‖⟨⟩[]", '<mo stretchy="false">{}</mo>'),
}
"""The markup of kinds and signs that are more than an element."""


def _mathml(node: Node) -> str:
    inside = "".join(map(_mathml, node.parts))
    if node.kind in ("row", "fence"):
        is_tall = node.kind == "fence" and any(part.is_tall for part in node.parts)
        inside = _mathml_of_row(node.parts, is_tall)
    element = _ELEMENTS.get(node.kind, node.kind)
    markup = _SPECIAL.get(node.text or node.kind) or _SPECIAL.get(node.kind)
    text = escape(node.text) if node.kind in _SPECIAL else escape(node.text).replace("-", "−")
    return (markup or f"<{element}>{{}}</{element}>").format(inside or text)


def _mathml_of_row(parts: Sequence[Node], stretches: bool) -> str:
    """Write the parts of a row; a minus with nothing before it is a sign, with no space after."""
    out, before = "", Node("space")
    for k, part in enumerate(parts):
        follows_nothing = before.kind in ("space", "under", "limits")
        out += _THIN if before.kind == "word" and not part.is_sign else ""
        if part == Node("mo", "-") and (follows_nothing or before.text in tuple("([,=≤≥⇒⇔")):
            out += '<mo form="prefix">−</mo>'
        elif part.kind == "limits" and part.text != "∑":  # max(a, b), without limits
            out += f"<mi>{part.text}</mi>"
        elif stretches and k in (0, len(parts) - 1):
            out += f"<mo>{escape(part.text)}</mo>"
        else:
            out += _mathml(part)
        before = part
    return out


def _text(node: Node) -> str:
    parts = [_text(part) for part in node.parts]
    match node.kind:
        case "frac":
            base = node.parts[1].base
            is_symbol = base.kind in ("mi", "mn", "hat", "fence")
            divisor = _grouped(parts[1]) if is_symbol else f"({parts[1].strip()})"
            return f"{_grouped(parts[0])}/{divisor}"
        case "sqrt":
            return f"√{_grouped(parts[0])}"
        case "hat":
            return parts[0] + "̂"
        case "under":
            return f"{parts[0]}_{_grouped(parts[1], '{}')} "
        case "sub" | "sup" | "subsup":
            below = f"_{_grouped(parts[1], '{}')}" if node.kind != "sup" else ""
            above = parts[-1] if node.kind != "sub" else ""
            if above not in ("", "′"):
                above = f"^({above})" if "_" in above else f"^{_grouped(above)}"
            return parts[0] + below + above
        case "row" | "fence":
            return _joined(parts, node.parts)
        case "space":
            return "  "
    if node.text in RELATIONS:
        return f" {node.text} "
    return node.text + (" " if node.text in WORDS - {"exp"} or node.text == "," else "")


def _joined(texts: list[str], parts: tuple[Node, ...]) -> str:
    """Join the parts of a row, with spaces around words, after indexed letters and fractions."""
    out, before = "", "mo"
    for text, part in zip(texts, parts, strict=True):
        is_word = "word" in (before, part.kind) and before != "mo"
        crowded = is_word or before in ("sub", "subsup", "frac")
        out += f" {text}" if crowded and not part.is_sign and not out.endswith(" ") else text
        before = part.kind
    return out


def _grouped(text: str, brackets: str = "()") -> str:
    text = text.strip()
    simple = re.fullmatch(r"[\w⊤′…̂*]+|-\w", text)
    return text if simple else f"{brackets[0]}{text}{brackets[1]}"

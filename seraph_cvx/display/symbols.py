"""Symbols in prose as formulas have them: κ*, η̂, ℝ⁴ and 𝒮 ∪ 𝒟 for kappa*, eta_hat, R^4 and S u D.

The texts of the package are written in ASCII and converted where they are shown. What a user or a
solver wrote is not converted, and neither is code.
"""

from __future__ import annotations

import re
from html import escape

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Delta": "Δ",
    "Lambda": "Λ", "Phi": "Φ", "ell": "ℓ",
}  # fmt: skip
SCRIPTS = {
    "S": "𝒮", "D": "𝒟", "U": "𝒰", "F": "ℱ", "L": "ℒ", "X": "𝒳", "O": "𝒪", "K": "𝒦",
    "E": "ℰ", "Q": "𝒬",
}  # fmt: skip
"""The letters of the paper's sets and objectives."""
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_SIGNS = (
    (r"\bsum_SD\b", "∑_{S u D}"),
    (r"\bsum_", "∑_"),
    (r"(?<=[SDU]) u (?=[SDU]\b)", " ∪ "),
    (r"<=>", "⇔"),
    (r"=>", "⇒"),
    (r"<=", "≤"),
    (r">=", "≥"),
    (r"<(\S[^<>]*, [^<>]*\S)>", r"⟨\1⟩"),
    (r"\|\|", "‖"),
    (r"\bsqrt\((\w+)\)", r"√\1"),
    (r"\bRenyi\b", "Rényi"),
    (r"\bv'(?=A)", "v^⊤"),
    (r"(?<=\b[A-Z])'(?=[A-Z ,.;)]|$)", "^⊤"),
)
_SETS = r"(?<=∑_)[SDU]\b|(?<=\{)[SDU](?= ∪)|(?<=∪ )[SDU](?=\})"
_LONE_SETS = r"(?<![\w'.])[SDU](?![\w'(.]|-[a-z])"
_OBJECTIVES = r"\bF\b|\bL(?= is\b)"


def in_symbols(text: str, letters: bool = True) -> str:
    """Write the symbols of a text in Unicode; `letters`: S, D, U and F are those of the paper."""
    for pattern, sign in _SIGNS:
        text = re.sub(pattern, sign, text)
    text = re.sub(r"\bR\^(\d+)", lambda found: space_of(found[1]), text)
    text = re.sub(rf"(?<!\w)({'|'.join(GREEK)})(_hat)?(?![a-zA-Z0-9])", _letter, text)
    for pattern in (_SETS, _LONE_SETS, _OBJECTIVES) if letters else (_SETS,):
        text = re.sub(pattern, lambda found: SCRIPTS[found[0]], text)
    return text


def space_of(dimension: int | str) -> str:
    """Write the space of points with so many features."""
    return f"ℝ{dimension}".translate(RAISED)


def prose(text: str, letters: bool = True) -> str:
    """Write a text as HTML, escaped, with its symbols in Unicode and its scripts raised or lowered.

    Takes the parameters of :func:`in_symbols`.
    """
    html = escape(in_symbols(text, letters), quote=False)
    lowered = r"(?<!\w)([A-Za-zα-ω∑])_(?:\{([^}]*)\}|(\w{1,3})\b)"
    html = re.sub(lowered, r"\1<sub>\2\3</sub>", html)
    html = re.sub(r"\^\(([^()]*)\)|\^(\w+|⊤)", r"<sup>\1\2</sup>", html)
    return re.sub(r"(?<![\w)])-(?=[\w(ℱℒ])|(?<= )-(?= )", "−", html)


def _letter(found: re.Match[str]) -> str:
    return GREEK[found[1]] + ("\u0302" if found[2] else "")

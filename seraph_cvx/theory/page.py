"""The report as one HTML page: formulas in MathML, figures in SVG, nothing to fetch.

The markup is well-formed XML, and a content policy forbids the page to load anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ..display.chart import to_svg
from ..display.mathml import to_mathml
from ..display.page import write_page
from ..display.result_table import show
from ..display.symbols import prose
from .claim import Check, Claim, ClaimResult, Verdict
from .page_guide import STYLE, introduction, meanings, symbols

BADGES = {
    Verdict.HOLDS: "holds",
    Verdict.CORRECTED: "corrected",
    Verdict.REFUTED: "refuted",
    Verdict.UNDECIDED: "undecided",
}


def to_html(
    name: str,
    description: str,
    results: Sequence[ClaimResult],
    skipped: Sequence[Claim] = (),
) -> str:
    """Write the whole page as HTML."""
    body = [
        "<h1>The claims of the SERAPH paper, checked by machine</h1>",
        introduction(),
        f"<p>{_summary(description, results, skipped)}</p>",
        meanings(),
        symbols(),
        _contents(results, skipped),
        _in_order(
            {r.claim.number: _article(r) for r in results}
            | {c.number: _skipped_article(c) for c in skipped}
        ),
    ]
    return write_page(f"SERAPH verified on {name}", "".join(body), STYLE)


def _summary(description: str, results: Sequence[ClaimResult], skipped: Sequence[Claim]) -> str:
    counts = {verdict: sum(r.verdict is verdict for r in results) for verdict in Verdict}
    named = {verdict: verdict.value.replace("holds", "hold") for verdict in Verdict}
    words = [f"{count} {named[verdict]}" for verdict, count in counts.items() if count]
    words += [f"{len(skipped)} skipped, because slow"] if skipped else []
    wrong = [r for r in results if not r.as_expected]
    verdict = (
        "Every claim has the verdict it is known to deserve."
        if not wrong
        else "Not as expected: " + ", ".join(r.claim.name for r in wrong) + "."
    )
    total = len(results) + len(skipped)
    return (
        f"<b>The data.</b> {escape(description)}. <b>The outcome.</b> Of {total} claims: "
        f"{', '.join(words)}. {prose(verdict)}"
    )


def _contents(results: Sequence[ClaimResult], skipped: Sequence[Claim]) -> str:
    rows = {c.number: _row(c, _SKIPPED, "", "") for c in skipped}
    for r in results:
        numbers = (_number(r.residual), f"≤ {_number(r.tolerance)}")
        rows[r.claim.number] = _row(r.claim, _badge(r), *numbers)
    head = "".join(f"<th>{word}</th>" for word in ("", "claim", "verdict", "residual", "tolerance"))
    return (
        '<nav><h2>The claims</h2><p class="place">A click on a claim opens it.</p>'
        f'<table class="contents"><thead><tr>{head}</tr></thead>'
        f"<tbody>{_in_order(rows)}</tbody></table></nav>"
    )


def _in_order(parts: Mapping[int, str]) -> str:
    return "".join(parts[number] for number in sorted(parts))


def _row(claim: Claim, badge: str, residual: str, tolerance: str) -> str:
    return (
        f'<tr><td class="number">{claim.number}</td>'
        f'<td><a href="#claim-{claim.number}">{prose(claim.name)}</a></td><td>{badge}</td>'
        f'<td class="number">{residual}</td><td class="number">{tolerance}</td></tr>'
    )


def _article(result: ClaimResult) -> str:
    claim = result.claim
    parts = [_statement(claim)]
    if result.message:
        parts.append(f'<p class="fails">{escape(result.message)}</p>')
    if claim.correction:
        parts.append(f'<p class="correction"><b>What holds.</b> {prose(claim.correction)}</p>')
    if claim.consequence:
        words = f"<b>What this changes for you.</b> {prose(claim.consequence)}"
        parts.append(f'<p class="correction">{words}</p>')
    parts.append(f"<p><b>Evidence.</b> {prose(claim.evidence)}</p>")
    figures = "".join(map(to_svg, result.charts))
    aside = f'<div class="figures">{figures}</div>' if figures else ""
    parts.append(f'<div class="evidence"><div>{_tables(result)}</div>{aside}</div>')
    if claim.recomputation is not None:
        parts.append(
            "<p><b>Recompute it</b>, without this package:</p>"
            f"<pre><code>{escape(claim.recomputation.code)}</code></pre>"
            f"<p>prints</p><pre><samp>{escape(claim.recomputation.prints)}</samp></pre>"
        )
    return _folded(claim, _badge(result), "".join(parts))


def _skipped_article(claim: Claim) -> str:
    words = (
        "<p><b>Skipped</b>, because it is slow: nothing was checked. <code>seraph-cvx verify "
        "--all</code>, or <code>verify_paper(..., include_slow=True)</code>, checks it.</p>"
    )
    evidence = f"<p><b>Evidence.</b> {prose(claim.evidence)}</p>"
    return _folded(claim, _SKIPPED, _statement(claim) + words + evidence)


def _statement(claim: Claim) -> str:
    return (
        f'<p class="place">{prose(claim.place)}</p><p>{prose(claim.statement)}</p>'
        f'<div class="formula">{to_mathml(claim.formula)}</div>'
    )


def _folded(claim: Claim, badge: str, inside: str) -> str:
    """Fold a claim; a link to what is inside opens it."""
    return (
        f"<article><details><summary><h2>{claim.number}. {prose(claim.name)}</h2> {badge}</summary>"
        f'<div id="claim-{claim.number}" class="inside">{inside}</div></details></article>'
    )


def _tables(result: ClaimResult) -> str:
    parts = []
    if result.printed:
        parts.append(_checks("As printed" if result.corrected else "Checks", result.printed))
    if result.corrected:
        parts.append(_checks("What holds", result.corrected))
    if result.numbers:
        parts.append(_numbers(result.numbers))
    return "".join(parts)


def _checks(title: str, checks: Sequence[Check]) -> str:
    rows = "".join(
        f'<tr><td class="{"passes" if c.passes else "fails"}">{"passes" if c.passes else "fails"}'
        f'</td><td>{prose(c.name)}</td><td class="number">{_number(c.residual)}</td>'
        f'<td class="number">≤ {_number(c.tolerance)}</td></tr>'
        for c in checks
    )
    head = f"<th>{escape(title)}</th><th></th><th>residual</th><th>tolerance</th>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _numbers(numbers: Mapping[str, object]) -> str:
    rows = "".join(
        f"<tr><td>{prose(name)}</td>{_value(value)}</tr>" for name, value in numbers.items()
    )
    return f"<table><thead><tr><th>Number</th><th></th></tr></thead><tbody>{rows}</tbody></table>"


_SKIPPED = '<span class="badge skipped">skipped</span>'


def _badge(result: ClaimResult) -> str:
    surprise = "" if result.as_expected else " (unexpected)"
    kind = BADGES[result.verdict] if result.as_expected else "refuted"
    return f'<span class="badge {kind}">{escape(result.verdict.value)}{surprise}</span>'


def _number(value: float) -> str:
    return escape(show(float(value)))


def _value(value: object) -> str:
    if isinstance(value, str):
        return f"<td>{prose(value)}</td>"
    is_usual = not isinstance(value, float) or value == 0.0 or 1e-3 <= abs(value) < 1e6
    shown = f"{value:.6g}" if is_usual else f"{value:.1e}"
    return f'<td class="number">{prose(shown)}</td>'

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
from .claim import Check, ClaimResult, Verdict

BADGES = {
    Verdict.HOLDS: "holds",
    Verdict.CORRECTED: "corrected",
    Verdict.REFUTED: "refuted",
    Verdict.UNDECIDED: "undecided",
}


def to_html(name: str, description: str, results: Sequence[ClaimResult]) -> str:
    """Write the whole page as HTML."""
    counts = {verdict: sum(r.verdict is verdict for r in results) for verdict in Verdict}
    summary = ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)
    wrong = [r for r in results if not r.as_expected]
    verdict = (
        "Every claim has the verdict it is known to deserve."
        if not wrong
        else "Not as expected: " + ", ".join(r.claim.name for r in wrong) + "."
    )
    body = [
        "<h1>The claims of the SERAPH paper, checked by machine</h1>",
        f"<p>Data: {escape(description)}. {len(results)} claims: {escape(summary)}. "
        f"{escape(verdict)}</p>",
        _overview(results),
        *(_article(result) for result in results),
        "<p>Each residual is recomputed from the data, pair by pair; a solver's own status is "
        "never trusted. A claim that is refuted, or holds as corrected, is false as the paper "
        "prints it: its ten lines of Python show that without this package.</p>",
    ]
    return write_page(f"SERAPH verified on {name}", "".join(body))


def _overview(results: Sequence[ClaimResult]) -> str:
    rows = [
        f'<tr><td class="number">{r.claim.number}</td>'
        f'<td><a href="#claim-{r.claim.number}">{escape(r.claim.name)}</a></td>'
        f"<td>{_badge(r)}</td>"
        f'<td class="number">{_number(r.residual)}</td><td class="number">'
        f"{_number(r.tolerance)}</td></tr>"
        for r in results
    ]
    head = "".join(f"<th>{word}</th>" for word in ("", "claim", "verdict", "residual", "tolerance"))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _article(result: ClaimResult) -> str:
    claim = result.claim
    parts = [
        f'<article id="claim-{claim.number}"><header><h2>{claim.number}. {escape(claim.name)}</h2>'
        f"{_badge(result)}</header>",
        f'<p class="place">{escape(claim.place)}</p><p>{escape(claim.statement)}</p>',
        to_mathml(claim.formula),
    ]
    if result.message:
        parts.append(f'<p class="fails">{escape(result.message)}</p>')
    if claim.correction:
        parts.append(f'<p class="correction">What holds: {escape(claim.correction)}</p>')
    parts.append(f"<p><em>Evidence.</em> {escape(claim.evidence)}</p>")
    figures = "".join(map(to_svg, result.charts))
    aside = f'<div class="figures">{figures}</div>' if figures else ""
    parts.append(f'<div class="evidence"><div>{_tables(result)}</div>{aside}</div>')
    if claim.recomputation is not None:
        parts.append(
            '<details open="open"><summary>Recompute it</summary>'
            f"<pre><code>{escape(claim.recomputation.code)}</code></pre>"
            f"<p>prints</p><pre><samp>{escape(claim.recomputation.prints)}</samp></pre></details>"
        )
    return "".join([*parts, "</article>"])


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
        f'</td><td>{escape(c.name)}</td><td class="number">{_number(c.residual)}</td>'
        f'<td class="number">≤ {_number(c.tolerance)}</td></tr>'
        for c in checks
    )
    head = f"<th>{escape(title)}</th><th></th><th>residual</th><th>tolerance</th>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _numbers(numbers: Mapping[str, object]) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="number">{escape(_value(value))}</td></tr>'
        for name, value in numbers.items()
    )
    return f"<table><thead><tr><th>Number</th><th></th></tr></thead><tbody>{rows}</tbody></table>"


def _badge(result: ClaimResult) -> str:
    surprise = "" if result.as_expected else " (unexpected)"
    kind = BADGES[result.verdict] if result.as_expected else "refuted"
    return f'<span class="badge {kind}">{escape(result.verdict.value)}{surprise}</span>'


def _number(value: float) -> str:
    return escape(show(float(value)))


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)

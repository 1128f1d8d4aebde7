"""The claims as one HTML page: formulas in MathML, nothing to fetch.

The markup, in `page.html`, is well-formed XML, and a content policy forbids the page to load
anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..display.page import fill_template, write_page
from .claim import Claim, ClaimResult, Verdict

STYLE = """
.box { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: .6rem 1.2rem .8rem; margin: 1.2rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.2rem; margin: .4rem 0 0; }
dt { font-weight: 600; } dd { margin: 0; min-width: 0; }
dl math { margin: 0; padding: 0; font-size: 1.1rem; overflow: visible; }
article { padding: 0; margin: .5rem 0; } summary { cursor: pointer; padding: .7rem 1.2rem; }
summary h2 { display: inline; font-size: 1.1rem; margin-right: .6rem; }
.inside { padding: 0 1.2rem 1rem; scroll-margin-top: 8rem; }
.skipped { background: #e7e5e4; color: #1c1917; }
.formula { overflow-x: auto; overflow-y: hidden; } .formula math { overflow: visible; }
sub, sup { line-height: 0; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
  td, th { padding-right: .5rem; } .contents :is(td, th):nth-child(n + 4) { display: none; }
  .box, .inside, summary { padding-left: .8rem; padding-right: .8rem; } }
"""


def to_html(
    name: str, description: str, results: Sequence[ClaimResult], skipped: Sequence[Claim]
) -> str:
    """Write the whole page as HTML."""
    counts = Counter(result.verdict for result in results)
    outcome = [
        f"{counts[kind]} {kind.replace('holds', 'hold')}" for kind in Verdict if counts[kind]
    ]
    body = fill_template(
        "theory/page.html",
        description=description,
        entries=[*((result.claim, result) for result in results), *((c, None) for c in skipped)],
        counts=outcome + ([f"{len(skipped)} skipped, because slow"] if skipped else []),
        unexpected=[result.claim.name for result in results if not result.as_expected],
    )
    return write_page(f"SERAPH verified on {name}", body, STYLE)

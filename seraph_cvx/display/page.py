"""HTML pages that are written to a file: no script, nothing to fetch.

The style follows the reader's choice of light or dark, and a policy forbids pages to load anything.
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

from .mathml import to_mathml
from .result_table import show
from .symbols import in_symbols, prose

STYLE = """
:root { color-scheme: light dark; --text: light-dark(#222832, #ced6dd);
  --soft: light-dark(#57534e, #9ca4af); --ground: light-dark(#fff, #14181e);
  --card: light-dark(#f3f4f5, #222832); --edge: light-dark(#d6d3d1, #48566b);
  --line: light-dark(#e7e5e4, #48566b); --code: light-dark(#f3f4f5, #222832);
  --bad: light-dark(#b91c1c, #fca5a5); --good: light-dark(#15803d, #86efac);
  --bar: light-dark(#93c5fd, #1d4ed8); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--ground); overflow-wrap: break-word; }
a { color: inherit; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { font-size: 1.25rem; margin: 0; }
article { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: 1rem 1.2rem; margin: 1.2rem 0; }
header { display: flex; gap: .8rem; align-items: baseline; flex-wrap: wrap; }
.badge { border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem; font-weight: 600;
  white-space: nowrap; }
.holds { background: #dcfce7; color: #14532d; } .corrected { background: #fef3c7; color: #713f12; }
.refuted, .undecided { background: #fee2e2; color: #7f1d1d; }
.place { color: var(--soft); font-size: .9rem; margin: .1rem 0 .6rem; }
math { font-size: 1.15rem; margin: .8rem 0; padding: .35em 0; }
math { overflow-x: auto; overflow-y: hidden; }
table { border-collapse: collapse; font-size: .88rem; margin: .6rem 0; }
td, th { text-align: left; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.fails { color: var(--bad); font-weight: 600; } .passes { color: var(--good); }
.correction { border-left: 4px solid #d97706; padding-left: .8rem; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; padding: .7rem;
  overflow-x: auto; font-size: .82rem; }
.evidence { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
.evidence > div { flex: 1 1 24rem; min-width: 0; } .figures { padding-top: .6rem; }
svg { width: 100%; max-width: 30rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: currentColor; }
"""

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The content policy: the page may load nothing."""


def write_page(title: str, body: str, style: str = "", policy: str = POLICY) -> str:
    """Write a whole HTML page around its body, with CSS that only this page needs."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>"
        f"<body>{body}</body></html>\n"
    )


@cache
def templates() -> Any:
    """The Jinja2 environment of the package's templates, named by their path; text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=PackageLoader("seraph_cvx", ".")
    )
    environment.filters |= {
        "prose": lambda text: Markup(prose(text)),
        "symbols": in_symbols,
        "math": lambda latex, inline=False: Markup(to_mathml(latex, inline)),
        "number": show,
    }
    return environment


def fill_template(template: str, **values: Any) -> str:
    """Fill a template of this package."""
    return str(templates().get_template(template).render(values))

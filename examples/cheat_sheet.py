"""Writes cheat-sheet.pdf, one page, from cheat-sheet.md: python examples/cheat_sheet.py

Needs Chromium, and the package markdown, which the extra `lecture` brings.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown import markdown

import seraph_cvx
from seraph_cvx.display.mathml import to_mathml

HERE = Path(__file__).resolve().parent
LARGEST = 100_000  # bytes
STYLE = """
@page { size: A4 landscape; margin: 8mm 9mm; }
* { box-sizing: border-box; }
body { font: 8.5pt/1.34 "Liberation Sans", Arial, sans-serif; color: #1d2733; margin: 0; }
header { display: flex; justify-content: space-between; align-items: baseline;
  border-bottom: 1.2pt solid #1f5f8b; padding-bottom: 1.4mm; margin-bottom: 2.6mm; }
h1 { font-size: 15pt; margin: 0; color: #1f5f8b; } header p { margin: 0; color: #5a6774; }
main { columns: 3; column-gap: 6mm; }
section:nth-of-type(4), section:nth-of-type(6) { break-before: column; }
section { break-inside: avoid; margin: 0 0 3.2mm; }
h2 { font-size: 10pt; margin: 0 0 1.2mm; padding: .5mm 1.6mm; color: #fff; background: #1f5f8b;
  border-radius: 2pt; }
p { margin: .9mm 0; }
ul { margin: .8mm 0; padding-left: 3.6mm; } li code { white-space: nowrap; font-size: 7pt; }
code { font: 7.4pt "Liberation Mono", monospace; color: #7a2e12; }
pre { background: #f2f5f8; border-left: 1.4pt solid #9bb8cc; margin: 1mm 0; padding: 1mm 1.6mm; }
pre code { color: #1d2733; font-size: 7pt; line-height: 1.36; display: block; }
table { border-collapse: collapse; width: 100%; margin: 1mm 0; }
th { text-align: left; color: #5a6774; font-weight: 600; border-bottom: .8pt solid #9bb8cc; }
td { border-bottom: .4pt solid #d8e0e7; vertical-align: top; }
td, th { padding: .5mm 1.4mm .5mm 0; }
math { font-size: 8pt; } .formula { text-align: center; margin: 1.2mm 0; }
"""


def main() -> None:
    """Write the file, and refuse more than one page."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium on the path: install it, or put it there.")
    target = HERE / "cheat-sheet.pdf"
    with TemporaryDirectory() as folder:
        page, draft = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(to_html((HERE / "cheat-sheet.md").read_text("utf-8")), encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu"]
        command += [f"--user-data-dir={folder}/profile", "--no-pdf-header-footer"]
        command += ["--disable-pdf-tagging"]  # half of the size; the page of the site is accessible
        command += [f"--print-to-pdf={draft}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        content = draft.read_bytes()
    n_pages = len(re.findall(rb"/Type\s*/Page\b", content))
    if n_pages != 1 or len(content) > LARGEST:
        sys.exit(f"The sheet has {n_pages} pages and {len(content)} bytes: shorten cheat-sheet.md.")
    target.write_bytes(content)
    print(f"Written: {target.name}, {len(content) / 1000:.0f} kB")


def to_html(text: str) -> str:
    """The sheet as a page: a section for each heading, formulas in MathML, links without targets.

    A link leads nowhere on paper: instead, the path of the page stands beside it.
    """
    lead, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, slogan = lead.removeprefix("# ").strip().partition("\n\n")
    slogan = slogan.partition(" This page on one sheet")[0]
    sections = "".join(f"<section>{_section('## ' + part)}</section>" for part in parts)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>seraph_cvx: {title.lower()}'
        f"</title><style>{STYLE}</style><header><h1>seraph_cvx {title.lower()}</h1>"
        f"<p>{slogan} &nbsp; Version {seraph_cvx.__version__}</p></header>"
        f"<main>{sections}</main></html>"
    )


def _section(text: str) -> str:
    """One section in HTML."""
    text = re.sub(
        r"```\{math\}\n(.*?)\n```",
        lambda found: f'<div class="formula">{to_mathml(found[1])}</div>',
        text,
        flags=re.DOTALL,
    )
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"\1 &ensp;`examples/\2`", text)
    return markdown(text, extensions=["tables", "fenced_code"])


if __name__ == "__main__":
    main()

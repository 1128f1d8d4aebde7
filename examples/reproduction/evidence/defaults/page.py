"""The results of the benchmark of defaults as files: a page for people, a table for programs."""

from __future__ import annotations

from typing import Any

from ..results.tables import to_csv
from .contestants import DEFAULT, EUCLIDEAN
from .statistics import MeanRanks, Results, Rows, rank_methods
from .tables import (
    default_table,
    duels_table,
    failures_table,
    groups_of_sets,
    means_table,
    measures_table,
    ordered,
    sets_table,
    shown,
    titles_of,
)

MEANING = """\
Each draw has 100 points of a set (twice as many as labels where that is more, at most the whole
set), standardized; 2, 3, 5 or 10 of each class show their label (at most half of a class). The
others of the draw are judged: their error by the nearest labeled point, or by the prediction of a
classifier. All methods have the same draws. A method learns from all points of the draw, so this is
no error on new points; the held-out error is, on the points of the set that were not drawn.
"""

CHOSEN = """\
What was chosen on what: the defaults of SERAPH, and what SERAPHCV tries and how it chooses, were
chosen on other draws of the thirteen sets, and the defaults also on samplings 5000 and up of the
paper's twelve tasks, among which are iris, wine and breast cancer; four earlier variants of the
defaults, and a first version of SERAPHCV, with a look at draws 0 to 19. So none of these sets
judges them as new data would; tables of your own do. Nothing was chosen for the rivals on these
data: they have their own defaults, GDM the ridge that was chosen on samplings 5300 to 5309 of the
twelve tasks, and the two label-propagating classifiers a graph of seven neighbors, as
scikit-learn's default kernel joins hardly any two standardized points.
"""


def ranks_text(ranks: MeanRanks, picture: str = "") -> str:
    """A sentence on the mean ranks, with a link to the picture."""
    names = titles_of(ranks.names)
    listed = ", ".join(f"{names[n]} {r:.1f}" for n, r in zip(ranks.names, ranks.ranks, strict=True))
    text = (
        f"**Mean ranks** over {ranks.n_sets} sets (errors averaged over the numbers of labels, as "
        f"those of one set are not independent): {listed}. Friedman's test: chi-square "
        f"{ranks.chi_square:.1f}, p = {ranks.p_value:.2g}. By Nemenyi's test at 5 % two methods "
        f"differ where their mean ranks do by {ranks.critical_difference:.2f} or more."
    )
    return f"{text}\n\n![Mean ranks and the critical difference]({picture})" if picture else text


def defaults_page(rows: Rows, picture: str = "") -> str:
    """Write the page of results, from rows of runs."""
    rows = ordered(rows)
    results = Results(rows)
    n_draws = len({row["draw"] for row in rows})
    parts = [
        "# The defaults, on data outside the paper",
        f"`python examples/reproduction/defaults.py`: {len(rows)} runs of "
        f"{len(results.methods)} methods on "
        f"{len({cell[0] for cell in results.cells})} sets, {n_draws} draws.",
        MEANING.strip(),
        CHOSEN.strip(),
    ]
    for title, cells in groups_of_sets(results.cells).items():
        parts.append(means_table(results, title, cells).to_markdown())
    ranks = rank_methods(results)
    if ranks is not None:
        parts.append(ranks_text(ranks, picture))
    tables = [duels_table(results, reference, results.cells) for reference in (EUCLIDEAN, DEFAULT)]
    if EUCLIDEAN in results.methods and len(results.methods) > 1:
        tables.append(sets_table(results))
    if {EUCLIDEAN, DEFAULT} <= set(results.methods):
        tables.append(default_table(results))
    tables += [measures_table(rows), failures_table(rows)]
    parts += [table.to_markdown() for table in tables if table.rows]
    return "\n\n".join(parts) + "\n"


def defaults_csv(rows: Rows) -> str:
    """Write means over draws as CSV: a row per set, labels and measure, a column per method."""
    rows = ordered(rows)
    by_kind = {kind: Results(rows, kind) for kind in ("error", "error_3nn", "pair_auc")}
    lines = []
    for cell in by_kind["error"].cells:
        for measure in ("error", "error_se", "error_3nn", "pair_auc"):
            results = by_kind[measure.removesuffix("_se")]
            value = results.standard_error if measure.endswith("_se") else results.mean
            line: dict[str, Any] = {"set": cell[0], "labels": cell[1], "measure": measure}
            lines.append(line | {m: shown(value(m, cell)) for m in results.methods})
    return to_csv(lines)

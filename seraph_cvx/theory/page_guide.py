"""What stands at the top of the report: what it is, what its words mean, and its symbols."""

from __future__ import annotations

from ..display.mathml import to_mathml
from ..display.symbols import prose

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
  td, th { padding-right: .5rem; } .contents td:nth-child(5), .contents th:nth-child(5),
  .contents td:nth-child(4), .contents th:nth-child(4) { display: none; }
  .box, .inside, summary { padding-left: .8rem; padding-right: .8rem; } }
"""

VERDICTS = (
    ("holds", "holds", "Every check of the statement passes, as the paper prints it."),
    (
        "corrected",
        "holds as corrected",
        "False as printed, true under a condition that the paper does not name. The residual is "
        "that of the corrected statement.",
    ),
    (
        "refuted",
        "refuted",
        "False as printed, and another statement holds instead. The residual is that of the other "
        "statement.",
    ),
    ("undecided", "not decided", "A solver that the evidence needs gave no answer."),
    ("skipped", "skipped", "Not checked here, because it is slow."),
)

SYMBOLS = (
    (r"x_i, v_k", "a point, and the difference of the two points of pair k"),
    (
        r"\mathcal{S}, \mathcal{D}, \mathcal{U}",
        "the similar, dissimilar and unlabeled pairs; #S is the number of similar ones",
    ),
    (r"y", "the label of a pair: +1 similar, -1 dissimilar"),
    (
        r"A, \|v\|_A^2",
        "the metric, a positive semidefinite (PSD) matrix, and the squared distance v'Av",
    ),
    (
        r"p^A(y), \eta",
        "the probability of a label under A, (8), and the squared distance at which both labels "
        "are as likely",
    ),
    (r"s_k, \sigma", "the squared distance of pair k less eta, and p(-1) = sigma(s)"),
    (r"q(y)", "the soft label of an unlabeled pair, from the E-step (10)"),
    (r"\mu, \lambda", "the weight of the unlabeled pairs, and of the trace of A"),
    (
        r"\kappa, \kappa^*",
        "the multiplier of the features in (2) to (6), its best value; (7) and (8) do without it",
    ),
    (
        r"\hat{\eta}, \hat{\lambda}",
        "the hyperparameters of (7) that correspond to eta and lambda of (6)",
    ),
    (
        r"\mathcal{F}, f = -\mathcal{F}",
        "what the M-step (11) maximizes, and its negative, which this package minimizes",
    ),
    (r"J", "what the alternation of E-steps and M-steps descends"),
    (r"H, H_a", "Shannon's entropy in nats, and Renyi's of order a"),
    (
        r"c_k, b_k",
        "the weight of pair k in the M-step, and the share of it that counts as dissimilar",
    ),
)


def introduction() -> str:
    """Say what the paper and this page are."""
    return (
        "<p>SERAPH learns a Mahalanobis metric from a few labeled and many unlabeled points. Its "
        "paper (Niu, Dai, Yamada and Sugiyama, ICML 2012) states theorems, prints formulas, and "
        "remarks things in passing. This page takes each of these claims, says in a sentence and a "
        "formula what it means, and tests it with numbers on a data set. Where the paper is wrong "
        "it says what holds instead, what that changes for you, and how to see it for yourself in "
        "ten lines of Python.</p>"
    )


def meanings() -> str:
    """Say what residual, tolerance and verdict mean."""
    words = [
        (
            "residual",
            "How far the numbers are from what the claim says; 0 is exact. It is recomputed from "
            "the data, pair by pair: a solver's own status is never trusted.",
        ),
        (
            "tolerance",
            "The largest residual that passes a check: room for rounding, and for the accuracy of "
            "the solver that is compared with. A claim has several checks; the list of claims "
            "shows the one nearest to failing.",
        ),
    ]
    rows = [f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in words]
    rows += [
        f'<dt><span class="badge {kind}">{verdict}</span></dt><dd>{meaning}</dd>'
        for kind, verdict, meaning in VERDICTS
    ]
    return f'<section class="box"><h2>How to read it</h2><dl>{"".join(rows)}</dl></section>'


def symbols() -> str:
    """Say what the symbols of the formulas mean."""
    rows = [
        f"<dt>{to_mathml(latex, inline=True)}</dt><dd>{prose(meaning)}</dd>"
        for latex, meaning in SYMBOLS
    ]
    return f'<section class="box"><h2>Symbols</h2><dl>{"".join(rows)}</dl></section>'

"""The options of `seraph-cvx fit`, and what the help says of each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Algorithm(StrEnum):
    """How the metric is learned."""

    EM = "em"
    DIRECT = "direct"


TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A table: a row of column names, then a row for each point; every column but the "
        "label holds numbers; cells are separated by commas, semicolons or tabs.",
    ),
]
LabelColumn = Annotated[
    str,
    typer.Option(metavar="COLUMN", help="The column of class labels. Empty cell: unknown."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where the metric goes: .csv (the feature names, then its rows) or .npz (arrays "
        "metric, components, feature_names; mean and scale if standardized). "
        "By default FILE.metric.csv.",
    ),
]
UnlabeledWeight = Annotated[
    str,
    typer.Option(
        metavar="full|ratio|NUMBER",
        help="mu: how much an unlabeled pair counts. ratio is the paper's choice, labeled "
        "pairs over unlabeled pairs; full makes up for what the soft labels lose; 0 "
        "ignores the unlabeled points.",
    ),
]
TraceWeight = Annotated[
    str,
    typer.Option(
        metavar="auto|NUMBER",
        help="lambda: a larger one gives a lower rank, too large a one the zero metric. auto is "
        "0.08 times the smallest that is too large, divided by the number of classes.",
    ),
]
Threshold = Annotated[
    float,
    typer.Option(help="eta: the squared distance at which a pair is as likely similar as not."),
]
Sharpness = Annotated[
    float | None,
    typer.Option(
        help="How decided the soft labels of em are; 2 by default. The paper's 1 + mu makes "
        "the unlabeled points count for little: see --setting."
    ),
]
IdentityShare = Annotated[
    str,
    typer.Option(
        metavar="auto|NUMBER",
        help="The share of the reference in the metric that is written; 0 is the certified one. "
        "auto is the more the less of the similar pairs the learned metric brings together.",
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        metavar="within|identity",
        help="The reference: the Euclidean distance (identity), or that in units of the spread "
        "inside the classes (within).",
    ),
]
CorrelationWeight = Annotated[
    str,
    typer.Option(
        metavar="auto|NUMBER",
        help="How much the trace penalty follows the covariance of the features, from 0 (as in "
        "the paper) to below 1. auto is 0 unless the features are very strongly correlated.",
    ),
]
PaperSetting = Annotated[
    str | None,
    typer.Option(
        metavar="none|post|proj|hyper",
        help="One of the paper's settings, instead of the weights, the sharpness, the share and "
        "the reference above.",
    ),
]
AlgorithmChoice = Annotated[
    Algorithm,
    typer.Option(
        help="em: the paper's alternation, whose convex steps are certified. direct: descent "
        "on the paper's objective (7), which is not convex and has no certificate."
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        help="For the convex steps of em: fista (the default), projected-gradient, CLARABEL, SCS."
    ),
]
Tol = Annotated[
    float,
    typer.Option(
        help="em ends when J falls by less than this, relatively; direct, when the gradient of (7) "
        "promises no larger relative fall."
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(min=1, help="The most iterations; by default 500 for em, 5000 for direct."),
]
Standardize = Annotated[
    bool,
    typer.Option(
        help="Bring each feature to mean 0 and variance 1 first. Features on different scales "
        "make the trace weight (lambda) meaningless."
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Draw the points before and after, and J: .png, .pdf or .svg."
    ),
]
AllowUnattained = Annotated[
    bool,
    typer.Option(
        "--allow-unattained", help="Continue if no best metric exists (with trace weight 0)."
    ),
]

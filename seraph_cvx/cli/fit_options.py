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


class Filling(StrEnum):
    """What stands in for a number that is missing."""

    MEDIAN = "median"
    MEAN = "mean"


class DecimalMark(StrEnum):
    """What stands between the whole part of a number and its fraction."""

    POINT = "."
    COMMA = ","


TABLE, METRIC, SEARCH = "Reading the table", "What is learned", "How it is searched for"
FIRST = "What most people need"

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
    typer.Option(
        metavar="COLUMN",
        help="The column of class labels. Empty cell: unknown.",
        rich_help_panel=FIRST,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Where the model goes: .npz, for seraph-cvx apply and load_model, with the scaling, "
        "the labeled points and the names of the columns; or .csv, the matrix alone. "
        "By default FILE.metric.npz.",
        rich_help_panel=FIRST,
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files that exist already.", rich_help_panel=FIRST),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Draw the points before and after, and J: .png, .pdf or .svg.",
        rich_help_panel=FIRST,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a report of the fit, one page that works offline: .html.",
        rich_help_panel=FIRST,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Leave a column out, such as a number of each row; may be given several times.",
        rich_help_panel=FIRST,
    ),
]
Unknown = Annotated[
    str,
    typer.Option(
        metavar="WORDS",
        help="Labels that mean an unknown class, with commas between; an empty cell always does.",
        rich_help_panel=TABLE,
    ),
]
OneHot = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Make a feature of each value of a column of text; may be given several times.",
        rich_help_panel=TABLE,
    ),
]
Impute = Annotated[
    Filling | None,
    typer.Option(
        help="Fill empty cells by the median or the mean of their column.",
        rich_help_panel=TABLE,
    ),
]
Decimal = Annotated[
    DecimalMark,
    typer.Option(help="The decimal mark of the numbers.", rich_help_panel=TABLE),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The encoding of the text, such as cp1252; by default UTF-8, or what a byte-order "
        "mark says.",
        rich_help_panel=TABLE,
    ),
]
Standardize = Annotated[
    bool,
    typer.Option(
        help="Bring each feature to mean 0 and variance 1 first. Features on different scales "
        "make the trace weight (lambda) meaningless.",
        rich_help_panel=TABLE,
    ),
]
UnlabeledWeight = Annotated[
    str,
    typer.Option(
        metavar="full|ratio|NUMBER",
        help="mu: how much an unlabeled pair counts. ratio is the paper's choice, labeled "
        "pairs over unlabeled pairs; full makes up for what the soft labels lose; 0 "
        "ignores the unlabeled points.",
        rich_help_panel=METRIC,
    ),
]
TraceWeight = Annotated[
    str,
    typer.Option(
        metavar="auto|NUMBER",
        help="lambda: a larger one gives a lower rank, too large a one the zero metric. auto is a "
        "fiftieth of the smallest that is too large.",
        rich_help_panel=METRIC,
    ),
]
Threshold = Annotated[
    float,
    typer.Option(
        help="eta: the squared distance at which a pair is as likely similar as not.",
        rich_help_panel=METRIC,
    ),
]
Sharpness = Annotated[
    float | None,
    typer.Option(
        help="How decided the soft labels of em are; 2 by default. The paper's 1 + mu makes "
        "the unlabeled points count for little: see --setting.",
        rich_help_panel=METRIC,
    ),
]
IdentityShare = Annotated[
    str,
    typer.Option(
        metavar="auto|NUMBER",
        help="The share of the reference in the metric that is written; with 0 it is the certified "
        "one. auto is the more the less of the similar pairs the learned metric brings together.",
        rich_help_panel=METRIC,
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        metavar="within|identity",
        help="The reference: the Euclidean distance (identity), or that in units of the spread "
        "inside the classes (within).",
        rich_help_panel=METRIC,
    ),
]
CorrelationWeight = Annotated[
    str,
    typer.Option(
        metavar="auto|NUMBER",
        help="How much the trace penalty follows the covariance of the features, from 0 (as in "
        "the paper) to below 1. auto is 0 unless the features are very strongly correlated.",
        rich_help_panel=METRIC,
    ),
]
PaperSetting = Annotated[
    str | None,
    typer.Option(
        metavar="none|post|proj|hyper",
        help="One of the paper's settings, instead of the weights, the sharpness, the share and "
        "the reference above.",
        rich_help_panel=METRIC,
    ),
]
AlgorithmChoice = Annotated[
    Algorithm,
    typer.Option(
        help="em: the paper's alternation, whose convex steps are certified. direct: descent "
        "on the paper's objective (7), which is not convex and has no certificate.",
        rich_help_panel=SEARCH,
    ),
]
Solver = Annotated[
    str,
    typer.Option(
        help="For the convex steps of em: fista (the default), projected-gradient, CLARABEL, SCS.",
        rich_help_panel=SEARCH,
    ),
]
Tol = Annotated[
    float,
    typer.Option(
        help="em ends when J falls by less than this, relatively; direct, when the gradient of (7) "
        "promises no larger relative fall.",
        rich_help_panel=SEARCH,
    ),
]
MStepTol = Annotated[
    float,
    typer.Option(
        help="The relative gap to which the last M-step of em is to be certified.",
        rich_help_panel=SEARCH,
    ),
]
MaxIter = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The most iterations; by default 500 for em, 5000 for direct.",
        rich_help_panel=SEARCH,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="End after so long, with the best metric so far.",
        rich_help_panel=SEARCH,
    ),
]
Polish = Annotated[
    bool,
    typer.Option(
        "--polish",
        help="Continue with fista where the answer of another solver is not certified.",
        rich_help_panel=SEARCH,
    ),
]
AllowUnattained = Annotated[
    bool,
    typer.Option(
        "--allow-unattained",
        help="Continue if no best metric exists (with trace weight 0).",
        rich_help_panel=SEARCH,
    ),
]

"""The options of `seraph-cvx fit`, and what the help says of each."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

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


def _in(panel: str, words: str, *flags: str, **more: Any) -> Any:
    """An option that the help lists in a panel, with these words."""
    return typer.Option(*flags, help=words, rich_help_panel=panel, **more)


TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A table: a row of column names, then a row for each point; every column but the "
        "label holds numbers; cells are separated by commas, semicolons or tabs.",
    ),
]
LabelColumn = Annotated[
    str, _in(FIRST, "The column of class labels. Empty cell: unknown.", metavar="COLUMN")
]
Out = Annotated[
    Path | None,
    _in(
        FIRST,
        "Where the model goes: .npz, for seraph-cvx apply and load_model, with the scaling, "
        "the labeled points and the names of the columns; or .csv, the matrix alone. By "
        "default FILE.metric.npz.",
        metavar="FILE",
    ),
]
Force = Annotated[bool, _in(FIRST, "Replace files that exist already.", "--force")]
Picture = Annotated[
    Path | None,
    _in(FIRST, "Draw the points before and after, and J: .png, .pdf or .svg.", metavar="FILE"),
]
Html = Annotated[
    Path | None,
    _in(FIRST, "Write a report of the fit, one page that works offline: .html.", metavar="FILE"),
]
Drop = Annotated[
    list[str] | None,
    _in(
        FIRST,
        "Leave a column out, such as a number of each row; may be given several times.",
        metavar="COLUMN",
    ),
]
Unknown = Annotated[
    str,
    _in(
        TABLE,
        "Labels that mean an unknown class, with commas between; an empty cell always does.",
        metavar="WORDS",
    ),
]
OneHot = Annotated[
    list[str] | None,
    _in(
        TABLE,
        "Make a feature of each value of a column of text; may be given several times.",
        metavar="COLUMN",
    ),
]
Impute = Annotated[
    Filling | None, _in(TABLE, "Fill empty cells by the median or the mean of their column.")
]
Decimal = Annotated[DecimalMark, _in(TABLE, "The decimal mark of the numbers.")]
Encoding = Annotated[
    str | None,
    _in(
        TABLE,
        "The encoding of the text, such as cp1252; by default UTF-8, or what a byte-order "
        "mark says.",
        metavar="NAME",
    ),
]
Standardize = Annotated[
    bool,
    _in(
        TABLE,
        "Bring each feature to mean 0 and variance 1 first. Features on different scales "
        "make the trace weight meaningless.",
    ),
]
UnlabeledWeight = Annotated[
    str,
    _in(
        METRIC,
        "How much an unlabeled pair counts. ratio is the paper's choice, labeled pairs "
        "over unlabeled pairs; full makes up for what the soft labels lose; 0 ignores the "
        "unlabeled points.",
        metavar="full|ratio|NUMBER",
    ),
]
TraceWeight = Annotated[
    str,
    _in(
        METRIC,
        "A larger one gives a lower rank, too large a one the zero metric. auto is 0.08 times "
        "the smallest that is too large, divided by the number of classes.",
        metavar="auto|NUMBER",
    ),
]
Threshold = Annotated[
    float, _in(METRIC, "The squared distance at which a pair is as likely similar as not.")
]
Sharpness = Annotated[
    float | None,
    _in(
        METRIC,
        "How decided the soft labels of em are; 2 by default. The paper's choice makes the "
        "unlabeled points count for little: see --setting.",
    ),
]
IdentityShare = Annotated[
    str,
    _in(
        METRIC,
        "The share of the reference in the metric that is written; with 0 it is the "
        "certified one. auto is the more the less of the similar pairs the learned metric "
        "brings together.",
        metavar="auto|NUMBER",
    ),
]
Reference = Annotated[
    str,
    _in(
        METRIC,
        "The reference: the Euclidean distance (identity), or that in units of the spread "
        "inside the classes (within).",
        metavar="within|identity",
    ),
]
CorrelationWeight = Annotated[
    str,
    _in(
        METRIC,
        "How much the trace penalty follows the covariance of the features, from 0 (as in "
        "the paper) to below 1. auto is 0 unless the features are very strongly correlated.",
        metavar="auto|NUMBER",
    ),
]
PaperSetting = Annotated[
    str | None,
    _in(
        METRIC,
        "One of the paper's settings, instead of the weights, the sharpness, the share and "
        "the reference above.",
        metavar="none|post|proj|hyper",
    ),
]
AlgorithmChoice = Annotated[
    Algorithm,
    _in(
        SEARCH,
        "em: the paper's alternation, whose convex steps are certified. direct: descent on "
        "the paper's objective (7), which is not convex and has no certificate.",
    ),
]
Solver = Annotated[
    str,
    _in(
        SEARCH,
        "For the convex steps of em: fista (the default), projected-gradient, CLARABEL, SCS.",
    ),
]
Tol = Annotated[
    float,
    _in(
        SEARCH,
        "em ends when J falls by less than this, relatively; direct, when the gradient of "
        "(7) promises no larger relative fall.",
    ),
]
MStepTol = Annotated[
    float, _in(SEARCH, "The relative gap to which the last M-step of em is to be certified.")
]
MaxIter = Annotated[
    int | None, _in(SEARCH, "The most iterations; by default 500 for em, 5000 for direct.", min=1)
]
TimeLimit = Annotated[
    float | None,
    _in(SEARCH, "End after so long, with the best metric so far.", metavar="SECONDS", min=0.0),
]
Polish = Annotated[
    bool,
    _in(
        SEARCH,
        "Continue with fista where the answer of another solver is not certified.",
        "--polish",
    ),
]
AllowUnattained = Annotated[
    bool,
    _in(SEARCH, "Continue if no best metric exists (with trace weight 0).", "--allow-unattained"),
]

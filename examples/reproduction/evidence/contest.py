"""The defaults on data outside the paper: sets, draws, methods, measures, and all runs of them."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import rivals
from joblib import delayed
from scipy.spatial.distance import pdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from seraph_cvx import SERAPH, datasets
from seraph_cvx.estimators.half_labeled import LabeledOnly
from seraph_cvx.estimators.mahalanobis import MahalanobisTransformer
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import check_number

from .methods import CHOICES
from .runs import DONE, FAILED, Callback, RunJournal, RunTable
from .tasks import UNKNOWN, known_names, shift_and_spread, vote

# Data sets and draws

MORE = (
    *("australian", "cleveland", "contraceptive", "dermatology", "german", "glass", "haberman"),
    *("hayes-roth", "led7digit", "movement_libras", "newthyroid", "segment", "wisconsin"),
)
"""The sets of the file ``more.npz``, arrays ``NAME__X`` and ``NAME__y``: none is in the paper."""

EMBEDDED = ("iris", "wine", "breast_cancer", "digits")
"""The sets that scikit-learn brings along; the first three are in the paper's Table 1."""

POINTS = 100
"""Points of a draw, unless the labels are more than half of them."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points of known class, as they are in the file."""

    name: str
    X: Any
    y: Any

    @classmethod
    def of(cls, name: str, X, y) -> DataSet:
        """Number the classes of points, and check that there is something to tell apart."""
        points, classes = np.asarray(X, dtype=np.float64), np.asarray(y)
        if points.ndim != 2 or classes.shape != (len(points),):
            raise ValueError(
                f"{name}: X of shape {points.shape} and y of shape {classes.shape} are not n "
                "points and their n classes."
            )
        if not np.all(np.isfinite(points)):
            raise ValueError(f"{name}: X has entries that are not finite: remove their rows.")
        codes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
        sizes = np.bincount(codes)
        if len(sizes) < 2 or sizes.min() < 2:
            raise ValueError(
                f"{name} has {len(sizes)} classes, the smallest of {sizes.min()} points: "
                "two classes of two points each are needed, one point to show and one to judge."
            )
        return cls(name, points, codes)

    @property
    def digest(self) -> str:
        """A short fingerprint of the points and classes."""
        content = np.ascontiguousarray(self.X).tobytes() + self.y.tobytes()
        return hashlib.sha256(repr(self.X.shape).encode() + content).hexdigest()[:12]


def find_sets(
    sets: Sequence[str] | Mapping[str, tuple[Any, Any]] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> list[DataSet]:
    """Load data sets by their names, or take given ones."""
    if isinstance(sets, Mapping):
        return [DataSet.of(name, *points) for name, points in sets.items()]
    names = known_names(sets, (*MORE, *EMBEDDED), "data set")
    more = _read_more([name for name in names if name in MORE], data_dir)
    return [DataSet.of(name, *(more.get(name) or datasets.load(name))) for name in names]


def _read_more(names, data_dir):
    if not names:
        return {}
    folder = data_dir if data_dir is not None else os.environ.get(datasets.DATA_VARIABLE)
    path = Path(folder or ".") / "more.npz"
    if folder is None or not path.is_file():
        raise FileNotFoundError(
            f"{', '.join(names)}: {path} does not exist. Give the folder of more.npz (arrays "
            f"NAME__X and NAME__y) as data_dir or {datasets.DATA_VARIABLE}; or ask for the sets "
            f"{','.join(EMBEDDED)}, which need no file."
        )
    with np.load(path, allow_pickle=False) as arrays:
        missing = [name for name in names if f"{name}__X" not in arrays]
        if missing:
            raise ValueError(f"{path} has no arrays {missing[0]}__X and {missing[0]}__y.")
        return {name: (arrays[f"{name}__X"], arrays[f"{name}__y"]) for name in names}


@dataclass(frozen=True, eq=False)
class Draw:
    """Standardized points, a few of them with their class, and the points that were not drawn."""

    X: Any
    y: Any
    truth: Any
    X_rest: Any
    truth_rest: Any


def draw_points(data: DataSet, labels: int, number: int) -> Draw:
    """Draw points at random, `labels` of each class (at most half of it) with their label."""
    rng = np.random.default_rng([labels, number])
    order = rng.permutation(len(data.y))
    of_classes = [order[data.y[order] == c] for c in range(int(data.y.max()) + 1)]
    labeled = np.concatenate([points[: min(labels, len(points) // 2)] for points in of_classes])
    others = order[~np.isin(order, labeled)]
    n_others = min(max(POINTS, 2 * len(labeled)), len(order)) - len(labeled)
    taken = rng.permutation(np.concatenate([labeled, others[:n_others]]))
    rest = others[n_others:]
    shift, spread = shift_and_spread(data.X[taken], "standard")
    X, truth = (data.X - shift) / spread, data.y
    shown = np.where(np.isin(taken, labeled), truth[taken], UNKNOWN)
    return Draw(X[taken], shown, truth[taken], X[rest], truth[rest])


# Methods

EUCLIDEAN, DEFAULT = "euclidean", "seraph"
"""The two methods that every other one is tested against."""


class Contestant(NamedTuple):
    """A method of the benchmark, and a function that makes an estimator which is not fitted."""

    title: str
    make: Callable[[], Any]
    is_metric: bool = True


def _shrunk_lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _logistic():
    return LogisticRegression(max_iter=1000)


CONTESTANTS: dict[str, Contestant] = {
    DEFAULT: Contestant("SERAPH", SERAPH),
    "seraph-auto": Contestant(
        'SERAPH(classifier="auto")', lambda: make_pipeline(SERAPH(classifier="auto")), False
    ),
    "seraph-hyper": Contestant("SERAPH hyper", partial(SERAPH, setting="hyper")),
    **{
        name.lower(): Contestant(name, partial(getattr(rivals, name), **CHOICES.get(name, {})))
        for name in ("Euclidean", "ITML", "NCA", "MFDA", "LMNN", "GDM", "LDM")
    },
    "logistic": Contestant("logistic regression", lambda: LabeledOnly(_logistic()), False),
    "seraph-logistic": Contestant(
        "SERAPH + logistic regression",
        lambda: make_pipeline(SERAPH(), LabeledOnly(_logistic())),
        False,
    ),
    "lda": Contestant("shrunk LDA", lambda: LabeledOnly(_shrunk_lda()), False),
    "self-training": Contestant(
        "self-training", lambda: SelfTrainingClassifier(_shrunk_lda()), False
    ),
    "spreading": Contestant("label spreading", partial(LabelSpreading, kernel="knn"), False),
    "propagation": Contestant("label propagation", partial(LabelPropagation, kernel="knn"), False),
}
"""SERAPH in three ways, the rivals of Section 5, classifiers, and SERAPH before one of these.

Logistic regression and LDA with shrinkage are fitted to the labeled points; label spreading and
propagation are on the graph of seven neighbors: their default, a Gaussian kernel of gamma = 20,
joins hardly any two points.
"""


def find_contestants(
    methods: Sequence[str] | Mapping[str, Callable[[], Any]] | None = None,
) -> dict[str, Callable[[], Any]]:
    """What makes the methods of these names, or the given ones; None: all."""
    if isinstance(methods, Mapping):
        return dict(methods)
    chosen = known_names(methods, CONTESTANTS, "method")
    return {name: CONTESTANTS[name].make for name in chosen}


# Measures

MEASURES = ("error", "error_3nn", "pair_auc", "held_out_error")
"""The measures of a run, all in %; the last three are None where there is none."""


def run_on_draw(
    key: tuple[str, int, int, str], make: Callable[[], Any], draw: Draw
) -> dict[str, Any]:
    """Fit an estimator to a draw and measure it on the points whose class it was not shown."""
    row: dict[str, Any] = {
        **dict(zip(ContestJournal.key, key, strict=True)),
        **{"outcome": FAILED, **dict.fromkeys(MEASURES)},
        **{"seconds": 0.0, "warnings": 0, "detail": ""},
    }
    with warnings.catch_warnings(record=True) as caught, one_blas_thread():
        warnings.simplefilter("always")
        try:
            model = make()
            if "random_state" in getattr(model, "get_params", dict)():
                model.set_params(random_state=row["draw"])
            clock = time.process_time()
            model.fit(draw.X, draw.y)
            row["seconds"] = time.process_time() - clock
            row |= _judge(model, draw) | {"outcome": DONE}
        except Exception as error:  # whatever a method raises is its result
            row["detail"] = f"{type(error).__name__}: {error}"
    row["warnings"] = len({(warning.category, str(warning.message)) for warning in caught})
    return row


def _judge(model, draw):
    """The measures of a fitted model."""
    judged = draw.y == UNKNOWN
    points, truth = draw.X[judged], draw.truth[judged]
    measures: dict[str, float | None] = {}
    if hasattr(model, "predict") and not isinstance(model, MahalanobisTransformer):
        predict = model.predict
    else:
        Z, near = _projected(model, points), _projected(model, draw.X[~judged])
        classes = draw.y[~judged]

        def predict(X):
            return vote(_projected(model, X), near, classes)

        three = _share_wrong(vote(Z, near, classes, 3), truth)
        measures = {"error_3nn": three, "pair_auc": area_of_pairs(Z, truth)}
    if len(draw.X_rest):
        measures["held_out_error"] = _share_wrong(predict(draw.X_rest), draw.truth_rest)
    return measures | {"error": _share_wrong(predict(points), truth)}


def _projected(model, X):
    Z = np.asarray(model.transform(X), dtype=np.float64)
    if Z.ndim != 2 or len(Z) != len(X) or not np.all(np.isfinite(Z)):
        raise ValueError(f"transform of {len(X)} points made {Z.shape}, or not finite numbers.")
    return Z


def _share_wrong(guess, truth):
    return 100.0 * float(np.mean(np.asarray(guess) != truth))


def area_of_pairs(points, classes) -> float | None:
    """The ROC area (in %) by which distances tell pairs of one class from pairs of two."""
    similar = pdist(classes[:, None], "hamming") == 0.0
    if np.all(similar) or not np.any(similar):
        return None
    return 100.0 * float(roc_auc_score(similar, -pdist(points)))


# Runs


class ContestJournal(RunJournal):
    """The runs of the benchmark, made with data sets of given fingerprints."""

    kind, header = "run", "set"
    key: ClassVar = {"set": str, "labels": int, "draw": int, "method": str}
    measures = MEASURES

    def conditions_of(self, header: dict[str, Any]) -> dict[str, Any]:
        """The data set and its fingerprint."""
        return {header["set"]: header["digest"]}


def bench_defaults(
    methods: Sequence[str] | Mapping[str, Callable[[], Any]] | None = None,
    sets: Sequence[str] | Mapping[str, tuple[Any, Any]] | None = None,
    labels: Sequence[int] = (2, 3, 5, 10),
    draws: int = 20,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    n_jobs: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
) -> RunTable:
    """Run methods on draws of data sets with 2, 3, 5 and 10 labels per class.

    Methods and sets by name, or your own: estimators by functions that make them, points and
    classes. Each run is appended to `out`; `resume` repeats none.
    """
    for number in labels:
        check_number(number, "labels", 1.0)
    chosen = find_contestants(methods)
    found = {data.name: data for data in find_sets(sets, data_dir)}
    with ContestJournal(out, resume) as journal:
        for name, data in found.items():
            if journal.conditions.get(name, data.digest) != data.digest:
                raise ValueError(
                    f"The points of {name} are not those of the runs recorded in {journal.path}: "
                    "use another folder, or another name for the set."
                )
            if name not in journal.conditions:
                journal.add("set", {"set": name, "digest": data.digest})
        draw_once = lru_cache(maxsize=1)(draw_points)  # of one draw for all its methods

        def call(key):
            name, n, number, method = key
            return delayed(run_on_draw)(key, chosen[method], draw_once(found[name], n, number))

        keys = [(d, n, k, m) for k in range(draws) for d in found for n in labels for m in chosen]
        journal.make_runs(keys, call, n_jobs, callback)
        return RunTable(list(journal.finished.values()), journal.notes)

"""The defaults on data outside the paper: sets, draws, methods, measures, and all runs of them."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from scipy.spatial.distance import cdist, pdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from seraph_cvx import SERAPH, SERAPHCV, baselines, datasets
from seraph_cvx.estimators.half_labeled import LabeledOnly
from seraph_cvx.numerics.arrays import one_blas_thread
from seraph_cvx.numerics.checks import check_number

from .methods import CHOICES
from .runs import DONE, FAILED, Callback, RunJournal, RunTable, finished_runs
from .tasks import UNKNOWN, scale_features

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
    names = list(dict.fromkeys((*MORE, *EMBEDDED) if sets is None else sets))
    for name in names:
        if name not in (*MORE, *EMBEDDED):
            raise ValueError(
                f"There is no data set {name!r}; the known ones are {', '.join(MORE)}, "
                f"{', '.join(EMBEDDED)}."
            )
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

    name: str
    labels: int
    number: int
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
    n = min(max(POINTS, 2 * len(labeled)), len(order))
    taken = rng.permutation(np.concatenate([labeled, others[: n - len(labeled)]]))
    rest = others[n - len(labeled) :]
    X = data.X[taken]
    spread = np.where(np.ptp(X, axis=0) > 0.0, X.std(axis=0), 1.0)
    return Draw(
        name=data.name,
        labels=labels,
        number=number,
        X=scale_features(X, "standard"),
        y=np.where(np.isin(taken, labeled), data.y[taken], UNKNOWN),
        truth=data.y[taken],
        X_rest=(data.X[rest] - X.mean(axis=0)) / spread,
        truth_rest=data.y[rest],
    )


# Methods

EUCLIDEAN, DEFAULT = "euclidean", "seraph"
"""The two methods that every other one is tested against."""


@dataclass(frozen=True)
class Contestant:
    """A method of the benchmark, and a function that makes an estimator which is not fitted."""

    name: str
    title: str
    make: Callable[[], Any]
    is_metric: bool = True


def _shrunk_lda():
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


CONTESTANTS: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (
        Contestant(DEFAULT, "SERAPH", SERAPH),
        Contestant("seraph-hyper", "SERAPH hyper", partial(SERAPH, setting="hyper")),
        Contestant("seraph-cv", "SERAPHCV", SERAPHCV),
        *(
            Contestant(
                name.lower(), name, partial(getattr(baselines, name), **CHOICES.get(name, {}))
            )
            for name in ("Euclidean", "ITML", "NCA", "MFDA", "LMNN", "GDM", "LDM")
        ),
        Contestant("lda", "shrunk LDA", lambda: LabeledOnly(_shrunk_lda()), False),
        Contestant(
            "self-training", "self-training", lambda: SelfTrainingClassifier(_shrunk_lda()), False
        ),
        Contestant("spreading", "label spreading", partial(LabelSpreading, kernel="knn"), False),
        Contestant(
            "propagation", "label propagation", partial(LabelPropagation, kernel="knn"), False
        ),
    )
}
"""SERAPH in three ways, the rivals of Section 5, and four classifiers of scikit-learn.

LDA with shrinkage is fitted to the labeled points; label spreading and propagation are on the graph
of seven neighbors: their default, a Gaussian kernel of gamma = 20, joins hardly any two points.
"""


def find_contestants(
    methods: Sequence[str] | Mapping[str, Callable[[], Any]] | None = None,
) -> list[Contestant]:
    """Look up methods by name, or take given ones; None: all."""
    if isinstance(methods, Mapping):
        return [Contestant(name, name, make) for name, make in methods.items()]
    names = list(dict.fromkeys(CONTESTANTS if methods is None else methods))
    for name in names:
        if name not in CONTESTANTS:
            raise ValueError(
                f"There is no method {name!r}; the known ones are {', '.join(CONTESTANTS)}."
            )
    return [CONTESTANTS[name] for name in names]


# Measures

MEASURES = ("error", "error_3nn", "pair_auc", "held_out_error")
"""The measures of a run, all in %; the last three are None where there is none."""


def run_on_draw(method: str, make: Callable[[], Any], draw: Draw) -> dict[str, Any]:
    """Fit an estimator to a draw and measure it on the points whose class it was not shown."""
    row: dict[str, Any] = {
        **{"set": draw.name, "labels": draw.labels, "draw": draw.number, "method": method},
        **{"outcome": FAILED, **dict.fromkeys(MEASURES)},
        **{"seconds": 0.0, "warnings": 0, "detail": ""},
    }
    with warnings.catch_warnings(record=True) as caught, one_blas_thread():
        warnings.simplefilter("always")
        try:
            model = make()
            if "random_state" in getattr(model, "get_params", dict)():
                model.set_params(random_state=draw.number)
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
    classes, truth = draw.y[~judged], draw.truth[judged]
    measures: dict[str, float | None] = {}
    is_classifier = hasattr(model, "predict")
    if not is_classifier:
        near, Z = _projected(model, draw.X[~judged]), _projected(model, draw.X[judged])
        three = _share_wrong(vote(Z, near, classes, 3), truth)
        measures = {"error_3nn": three, "pair_auc": area_of_pairs(Z, truth)}

    def error(X, truth):
        guess = model.predict(X) if is_classifier else vote(_projected(model, X), near, classes, 1)
        return _share_wrong(guess, truth)

    if len(draw.X_rest):
        measures["held_out_error"] = error(draw.X_rest, draw.truth_rest)
    return measures | {"error": error(draw.X[judged], truth)}


def _projected(model, X):
    Z = np.asarray(model.transform(X), dtype=np.float64)
    if Z.ndim != 2 or len(Z) != len(X) or not np.all(np.isfinite(Z)):
        raise ValueError(f"transform of {len(X)} points made {Z.shape}, or not finite numbers.")
    return Z


def _share_wrong(guess, truth):
    return 100.0 * float(np.mean(np.asarray(guess) != truth))


def vote(points, labeled, classes, k: int):
    """Guess classes by the k nearest labeled points; of tied classes the nearest point's wins."""
    nearest = np.argsort(cdist(points, labeled), axis=1, kind="stable")[:, :k]
    voters = classes[nearest]
    counts = np.sum(voters[:, :, None] == voters[:, None, :], axis=2)
    return voters[np.arange(len(points)), np.argmax(counts, axis=1)]


def area_of_pairs(points, classes) -> float | None:
    """The ROC area (in %) by which distances tell pairs of one class from pairs of two."""
    first, second = np.triu_indices(len(points), 1)
    similar = classes[first] == classes[second]
    if np.all(similar) or not np.any(similar):
        return None
    return 100.0 * float(roc_auc_score(similar, -pdist(points)))


# Runs


class ContestJournal(RunJournal):
    """The runs of the benchmark; a header is the name of a data set and its fingerprint."""

    kind = "run"
    key: ClassVar = {"set": str, "labels": int, "draw": int, "method": str}
    measures = MEASURES

    def read_header(self, kind: str, content: dict[str, Any]) -> tuple[Any, ...]:
        """The data set and its fingerprint."""
        if kind != "set":
            return super().read_header(kind, content)
        return content["set"], content["digest"]

    def note_set(self, data: DataSet) -> None:
        """Record a data set; refuse one whose points are not those of the recorded runs."""
        known = dict(self.headers).get(data.name)
        if known is None:
            self.add("set", {"set": data.name, "digest": data.digest})
        elif known != data.digest:
            raise ValueError(
                f"The points of {data.name} are not those of the runs recorded in {self.path}: "
                "use another folder, or another name for the set."
            )


def bench_defaults(
    methods: Sequence[str] | Mapping[str, Callable[[], Any]] | None = None,
    sets: Sequence[str] | Mapping[str, tuple[Any, Any]] | None = None,
    labels: Sequence[int] = (2, 3, 5, 10),
    draws: int = 20,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    forget: Sequence[str] = (),
    n_jobs: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    callback: Callback | None = None,
) -> RunTable:
    """Run methods on draws of data sets with 2, 3, 5 and 10 labels per class.

    Methods and sets by name, or your own: estimators by functions that make them, points and
    classes. Each run is appended to `out`; `resume` repeats none but those of methods to `forget`.
    """
    for number in labels:
        check_number(number, "labels", 1.0)
    chosen = {contestant.name: contestant.make for contestant in find_contestants(methods)}
    found = find_sets(sets, data_dir)
    with ContestJournal(out, resume) as journal:
        for data in found:
            journal.note_set(data)
        for name in forget:
            journal.add("forget", {"method": name})
        work = [
            (data, n, number, method)
            for number in range(draws)
            for data in found
            for n in labels
            for method in chosen
            if (data.name, n, number, method) not in journal.finished
        ]
        draw_once = lru_cache(maxsize=1)(draw_points)  # of one draw for all its methods
        calls = (delayed(run_on_draw)(m, chosen[m], draw_once(*drawn)) for *drawn, m in work)
        total = draws * len(found) * len(labels) * len(chosen)
        with closing(finished_runs(journal, calls, n_jobs)) as finished:
            for number, row in enumerate(finished, start=total - len(work) + 1):
                if callback is not None:
                    callback(row, number, total)
        return RunTable(list(journal.finished.values()), journal.notes)

"""The twelve tasks of Section 5.1: their printed sizes and errors, their samplings.

A sampling is n training points of which the first few show their class, and test points. What the
paper leaves open is a parameter: how features are scaled, how the labeled points are drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from seraph_cvx import datasets
from seraph_cvx.datasets import Sampling

UNKNOWN = -1


@dataclass(frozen=True)
class Task:
    """A row of Table 1 as printed; images are drawn class by class."""

    name: str
    title: str
    data: str
    n_classes: int
    n_features: int
    n_training: int
    n_test: int
    n_labels: int
    similar: float
    dissimilar: float
    unlabeled: int
    digits: tuple[int, ...]

    @property
    def is_stratified(self) -> bool:
        """Whether training, labeled and test points are drawn class by class."""
        return bool(self.digits)

    @property
    def scaling(self) -> str:
        """The protocol's scaling of this task's features."""
        return "pixels" if self.digits else "unit"


TABLE1 = """
iris           iris           iris           3    4  100    38  10  15.10  29.90   4905  -
wine           wine           wine           3   13  100    78  10  13.98  31.02   4905  -
ionosphere     ionosphere     ionosphere     2   34  100   251  20  97.50  92.50   4760  -
balance        balance        balance        3    4  100   465  10  20.38  24.62   4905  -
breast_cancer  breast_cancer  breast_cancer  2   30  100   469  10  23.54  21.46   4905  -
diabetes       diabetes       diabetes       2    8  100   668  10  23.02  21.98   4905  -
usps-1-5-20    USPS_1-5,20    usps           5   64  100  2500  10   5     40      4905  12345
usps-1-5-40    USPS_1-5,40    usps           5   64  200  2500  20  30    160     19710  12345
usps-1-10-20   USPS_1-10,20   usps          10   64  200  2500  20  10    180     19710  1234567890
usps-1-10-40   USPS_1-10,40   usps          10   64  400  2500  40  60    720     79020  1234567890
mnist-1-7      MNIST_1,7      mnist          2  196  100  1000   4   2      4      4944  17
mnist-3-5-8    MNIST_3,5,8    mnist          3  196  150  1500   9   9     27     11139  358
"""
"""The fields of each :class:`Task` in order; _ stands for a blank in a title."""

TABLE2 = """
EUCLIDEAN     9.58 0.73   12.93 0.83  23.60 0.89  27.15 0.75  14.11 1.07  32.94 0.65
GDM           8.95 0.71   11.52 0.77  20.82 0.82  22.89 1.08  11.86 0.83  30.73 0.59
NCA           10.32 0.83  15.03 1.12  26.68 0.82  32.97 1.31  14.63 1.09  32.95 0.65
LMNN          9.81 0.79   14.83 0.97  22.25 0.75  24.00 1.34  13.86 0.84  32.02 0.60
ITML          5.57 0.53   8.22 0.66   20.35 0.64  22.04 0.80  9.60 0.49   31.21 0.73
LDM           7.27 0.72   17.21 1.41  24.54 0.92  21.22 0.93  14.85 0.92  34.33 0.60
MFDA          6.58 0.54   11.55 1.03  23.66 0.91  23.61 1.00  11.21 0.80  31.64 0.62
SERAPH_none   6.21 0.48   8.13 0.58   19.70 0.43  20.25 0.64  11.39 0.49  29.86 0.61
SERAPH_post   4.79 0.37   7.46 0.51   19.64 0.45  19.98 0.67  11.33 0.50  29.87 0.57
SERAPH_proj   5.79 0.54   7.39 0.50   19.53 0.46  20.94 0.64  9.61 0.49   30.43 0.65
SERAPH_hyper  5.31 0.43   7.38 0.49   19.33 0.42  20.15 0.63  10.04 0.52  30.02 0.63

EUCLIDEAN     36.63 0.80  28.43 0.60  49.17 0.50  39.30 0.39  10.42 0.67  37.30 0.81
GDM           37.62 0.77  -     -     -     -     -     -     -     -     -     -
NCA           37.55 0.84  28.39 0.60  57.01 0.82  49.21 0.66  10.42 0.67  37.75 0.92
LMNN          36.43 0.78  28.93 0.61  48.12 0.57  43.68 0.58  9.99 0.71   36.49 0.82
ITML          35.86 0.74  27.40 0.65  47.40 0.60  39.44 0.57  9.94 0.69   40.83 0.93
LDM           47.19 1.51  32.52 0.85  59.13 0.73  43.18 0.53  14.54 1.41  45.53 1.16
MFDA          42.52 0.82  28.82 0.62  52.13 0.59  37.78 0.50  9.35 0.72   42.39 0.92
SERAPH_none   36.08 0.75  27.41 0.60  47.29 0.58  38.36 0.55  9.97 0.71   36.44 0.84
SERAPH_post   35.79 0.75  27.37 0.60  47.12 0.58  38.20 0.55  10.98 0.79  36.45 0.84
SERAPH_proj   36.01 0.75  26.17 0.57  47.42 0.62  35.42 0.54  9.28 0.72   36.55 0.80
SERAPH_hyper  32.79 0.77  25.26 0.56  44.89 0.58  33.41 0.47  7.61 0.57   35.71 0.84
"""
"""Mean and standard error of the 1-NN error in %, the first six tasks above the last six."""


def _parse_task(line: str) -> Task:
    name, title, data, *numbers, digits = line.split()
    sizes = [int(word) if word.isdigit() else float(word) for word in numbers]
    chosen = tuple(int(digit) for digit in digits.strip("-"))
    return Task(name, title.replace("_", " "), data, *sizes, chosen)


TASKS = {task.name: task for task in map(_parse_task, TABLE1.strip().splitlines())}
"""The tasks by name, in the order of Table 1."""

UNFILED = ("iris", "wine", "balance", "breast_cancer")
"""The tasks whose data need no file: three ship with scikit-learn, one is an enumeration."""

PRINTED = {
    (line.split()[0], task): (float(mean), float(error))
    for block, tasks in zip(TABLE2.split("\n\n"), (list(TASKS)[:6], list(TASKS)[6:]), strict=True)
    for line in block.strip().splitlines()
    for task, mean, error in zip(tasks, line.split()[1::2], line.split()[2::2], strict=True)
    if mean != "-"
}
"""(row of Table 2, task) -> (mean, standard error); GDM has no entry where the paper has a dash."""


def known_names(names: Sequence[str] | None, known: Collection[str], word: str) -> list[str]:
    """The names asked for, each once, or all; an error lists the known ones."""
    for name in names or ():
        if name not in known:
            raise ValueError(f"There is no {word} {name!r}; the known ones are {', '.join(known)}.")
    return list(dict.fromkeys(known if names is None else names))


def find_task(name: str) -> Task:
    """Look up a task by its name; an error lists the known names."""
    return find_tasks([name])[0]


def find_tasks(names: Sequence[str] | None = None) -> list[Task]:
    """Look up tasks by their names, in the order of Table 1; None: all twelve."""
    chosen = known_names(names, TASKS, "task")
    return [task for name, task in TASKS.items() if name in chosen]


SCALINGS = ("unit", "pixels", "standard", "none")
"""Scalings: each feature to [0, 1]; one factor for all; mean 0 and variance 1; unchanged."""

WHITE = 255.0
"""The value of a white pixel."""

VARIANTS = (
    *("every-class", "random", "one-each", "balanced", "proportional"),
    *("trimmed-every-class", "trimmed-random", "trimmed-two-classes"),
)
"""How labeled points are drawn. every-class: at random, again until every class is among them;
random: without that condition; one-each: one of each class, the others at random; balanced (the
default for images): as many of each class; proportional: by the classes' shares of the data set.
trimmed-: the points that Table 1 leaves out (12 of iris, 60 of balance) are taken in equal numbers
from each class, not at random. trimmed-two-classes, with at least two classes among the labeled
points, is the default for UCI: it is nearest to the sizes of S that Table 1 prints."""


def load_task(task: Task, scaling: str | None = None, data_dir=None):
    """Load X and y of a task: the points of its classes, features scaled over the whole set."""
    X, y = datasets.load(task.data, data_dir)
    y = np.asarray(y)
    if task.digits:
        chosen = np.isin(y, task.digits)
        X, y = X[chosen], y[chosen]
    X = np.asarray(X, dtype=np.float64)
    if X.shape[1] != task.n_features:
        raise ValueError(
            f"{task.data} has {X.shape[1]} features where Table 1 has {task.n_features}: it is "
            "not the data set of the paper."
        )
    return scale_features(X, task.scaling if scaling is None else scaling, bool(task.digits)), y


def scale_features(X, scaling: str, is_image: bool = False):
    """Scale the features, (X - shift) / spread; a constant feature is only shifted."""
    shift, spread = shift_and_spread(X, scaling, is_image)
    return (X - shift) / spread


def shift_and_spread(X, scaling: str, is_image: bool = False):
    """What a scaling subtracts from each feature and divides it by."""
    if scaling not in SCALINGS:
        raise ValueError(f"scaling={scaling!r} is not known: use one of {', '.join(SCALINGS)}.")
    extent = np.ptp(X, axis=0)
    shift, spread = {
        "unit": lambda: (X.min(axis=0), extent),
        "standard": lambda: (X.mean(axis=0), np.where(extent > 0.0, X.std(axis=0), 0.0)),
        "pixels": lambda: (0.0, WHITE if is_image else np.max(np.abs(X))),
        "none": lambda: (0.0, 1.0),
    }[scaling]()
    return shift, np.where(spread > 0.0, spread, 1.0)


def draw_sampling(task: Task, X, y, seed: int, variant: str | None = None) -> Sampling:
    """Draw training points, the first few with their class, and test points (Section 5.1)."""
    labeled, unlabeled, test = draw_indices(task, y, np.random.default_rng(seed), variant)
    train = np.concatenate([labeled, unlabeled])
    known = np.arange(len(train)) < len(labeled)
    classes = np.where(known, y[train].astype(np.int64), UNKNOWN)
    return Sampling(task.name, X[train], classes, X[test], y[test].astype(np.int64))


def draw_indices(task: Task, y, rng, variant: str | None = None):
    """Draw the rows of the labeled, unlabeled and test points; of images, as many a class."""
    labeled, rest = draw_labeled(task, y, rng, variant)
    n_rest = task.n_training - task.n_labels
    if not task.is_stratified:
        return labeled, rest[:n_rest], rest[n_rest : n_rest + task.n_test]
    classes = np.unique(y)
    shown = np.sum(y[labeled, None] == classes, axis=0)
    unlabeled = _take(y, rest, classes, task.n_training // task.n_classes - shown)
    unlabeled = rng.permutation(unlabeled)
    rest = rest[~np.isin(rest, unlabeled)]
    return labeled, unlabeled, _take(y, rest, classes, task.n_test // task.n_classes)


def draw_labeled(task: Task, y, rng, variant: str | None = None):
    """Draw the rows of the labeled points as VARIANTS says, and shuffle the others."""
    if variant is None:
        variant = "balanced" if task.is_stratified else "trimmed-two-classes"
    if variant not in VARIANTS:
        raise ValueError(f"variant={variant!r} is not known: use one of {', '.join(VARIANTS)}.")
    order = rng.permutation(len(y))
    classes, counts = np.unique(y, return_counts=True)
    rule = variant.removeprefix("trimmed-")
    if rule != variant and not task.is_stratified:
        surplus = (len(y) - task.n_training - task.n_test) // len(classes)
        order = rng.permutation(_take(y, order, classes, counts - surplus))
    labeled = _choose_labeled(rule, task.n_labels, y, order, rng)
    return labeled, order[~np.isin(order, labeled)]


def _choose_labeled(rule, n_labels, y, order, rng):
    classes, counts = np.unique(y, return_counts=True)
    if rule in ("balanced", "proportional"):
        weights = counts if rule == "proportional" else np.ones(len(classes))
        return _take(y, order, classes, _share(n_labels, weights))
    if rule == "one-each":
        first = _take(y, order, classes, 1)
        return np.concatenate([first, order[~np.isin(order, first)][: n_labels - len(first)]])
    least = {"random": 1, "two-classes": 2, "every-class": len(classes)}[rule]
    while len(np.unique(y[order[:n_labels]])) < least:
        order = rng.permutation(order)
    return order[:n_labels]


def _share(total, weights):
    """Divide `total` by weight, at least one for each class; the largest remainders round up."""
    exact = total * weights / weights.sum()
    whole = np.maximum(np.floor(exact).astype(int), 1)
    left = max(total - int(whole.sum()), 0)
    whole[np.argsort(whole - exact, kind="stable")[:left]] += 1
    return whole


def _take(y, order, classes, counts):
    """Take this many points of each class, the first in the given order."""
    counts = np.broadcast_to(counts, classes.shape)
    return np.concatenate([order[y[order] == c][:k] for c, k in zip(classes, counts, strict=True)])


def vote(points, labeled, classes, k: int = 1):
    """Guess classes by the k nearest labeled points; of tied classes the nearest point's wins."""
    nearest = np.argsort(cdist(points, labeled), axis=1, kind="stable")[:, :k]
    voters = classes[nearest]
    counts = np.sum(voters[:, :, None] == voters[:, None, :], axis=2)
    return voters[np.arange(len(points)), np.argmax(counts, axis=1)]


def classify(sampling: Sampling, components, points):
    """The class of the labeled point that is nearest to each of some points."""
    known = sampling.labeled
    return vote(points @ components.T, sampling.X[known] @ components.T, sampling.y[known])


def nearest_neighbor_error(sampling: Sampling, components) -> float:
    """The share (in %) of test points whose nearest labeled point has another class."""
    predicted = classify(sampling, components, sampling.X_test)
    return 100.0 * float(np.mean(predicted != sampling.y_test))

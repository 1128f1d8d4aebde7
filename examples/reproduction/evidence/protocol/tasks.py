"""The twelve tasks of Table 1: sizes as printed, and which data they draw from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A task of Table 1, with its printed sizes."""

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
    digits: tuple[int, ...] = ()

    @property
    def is_stratified(self) -> bool:
        """Whether training, labeled and test points are drawn class by class."""
        return bool(self.digits)

    @property
    def scaling(self) -> str:
        """The protocol's scaling of this task's features."""
        return "pixels" if self.digits else "unit"


PRINTED_ROWS = """
iris           iris           iris           3    4  100    38  10  15.10  29.90   4905
wine           wine           wine           3   13  100    78  10  13.98  31.02   4905
ionosphere     ionosphere     ionosphere     2   34  100   251  20  97.50  92.50   4760
balance        balance        balance        3    4  100   465  10  20.38  24.62   4905
breast_cancer  breast_cancer  breast_cancer  2   30  100   469  10  23.54  21.46   4905
diabetes       diabetes       diabetes       2    8  100   668  10  23.02  21.98   4905
usps-1-5-20    USPS_1-5,20    usps           5   64  100  2500  10   5     40      4905  12345
usps-1-5-40    USPS_1-5,40    usps           5   64  200  2500  20  30    160     19710  12345
usps-1-10-20   USPS_1-10,20   usps          10   64  200  2500  20  10    180     19710  1234567890
usps-1-10-40   USPS_1-10,40   usps          10   64  400  2500  40  60    720     79020  1234567890
mnist-1-7      MNIST_1,7      mnist          2  196  100  1000   4   2      4      4944  17
mnist-3-5-8    MNIST_3,5,8    mnist          3  196  150  1500   9   9     27     11139  358
"""
"""The fields of each :class:`Task` in order; _ stands for a blank."""


def _parse(line: str) -> Task:
    name, title, data, *sizes, similar, dissimilar, unlabeled, digits = f"{line} -".split()[:12]
    classes, features, training, test, labels = map(int, sizes)
    return Task(
        name=name,
        title=title.replace("_", " "),
        data=data,
        n_classes=classes,
        n_features=features,
        n_training=training,
        n_test=test,
        n_labels=labels,
        similar=float(similar),
        dissimilar=float(dissimilar),
        unlabeled=int(unlabeled),
        digits=tuple(int(digit) for digit in digits if digit.isdigit()),
    )


TASKS: dict[str, Task] = {task.name: task for task in map(_parse, PRINTED_ROWS.strip().split("\n"))}
"""The tasks by name, in the order of Table 1."""

UNFILED = ("iris", "wine", "balance", "breast_cancer")
"""The tasks whose data need no file: three ship with scikit-learn, one is an enumeration."""


def find_task(name: str) -> Task:
    """Look up a task by its name; an error lists the known names."""
    if name not in TASKS:
        raise ValueError(
            f"There is no task {name!r}; the twelve of Table 1 are {', '.join(TASKS)}."
        )
    return TASKS[name]


def find_tasks(names: Sequence[str] | None = None) -> list[Task]:
    """Look up tasks by their names, in the order of Table 1; None: all twelve."""
    chosen = [find_task(name) for name in (TASKS if names is None else names)]
    return sorted(set(chosen), key=list(TASKS.values()).index)

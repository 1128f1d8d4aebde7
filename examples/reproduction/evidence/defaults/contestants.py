"""The methods of the benchmark of defaults by name: metric learners and classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from seraph_cvx.estimators.half_labeled import LabeledOnly
from seraph_cvx.estimators.seraph import SERAPH
from seraph_cvx.estimators.seraph_cv import SERAPHCV

from ..runs.methods import CHOICES
from .measures import Factory

EUCLIDEAN, DEFAULT = "euclidean", "seraph"
"""The two methods that every other one is tested against."""


@dataclass(frozen=True)
class Contestant:
    """A method of the benchmark."""

    name: str
    title: str
    make: Factory
    is_metric: bool = True


def _rival(name: str) -> Any:
    module = import_module(f"seraph_cvx.baselines.{name.lower()}")
    return getattr(module, name)(**CHOICES.get(name, {}))


def _shrunk_lda() -> LinearDiscriminantAnalysis:
    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


CONTESTANTS: dict[str, Contestant] = {
    contestant.name: contestant
    for contestant in (
        Contestant(DEFAULT, "SERAPH", SERAPH),
        Contestant("seraph-hyper", "SERAPH hyper", partial(SERAPH, setting="hyper")),
        Contestant("seraph-cv", "SERAPHCV", SERAPHCV),
        *(
            Contestant(name.lower(), name, partial(_rival, name))
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
"""SERAPH in three ways, the rivals of Section 5, and four classifiers.

The classifiers are scikit-learn's: LDA with shrinkage, fitted to the labeled points; self-training
with the same LDA inside; label spreading and label propagation on the graph of seven neighbors
(their default, a Gaussian kernel of gamma = 20, joins hardly any two standardized points).
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

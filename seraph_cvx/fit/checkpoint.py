"""Where an alternation is, in a file: a run that was killed goes on from there."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..m_step.solve import MStepSolver
from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..processes.array_file import parse_arrays, read_regular_file
from ..processes.journal import NUMBER
from ..processes.whole_file import write_whole
from .steps import DescentState

FORMAT = "seraph-cvx checkpoint 2"

NO_PART_OF_THE_RESULT = ("deadline", "watch", "memory_limit")
"""Fields of the solver that a resumed run may have otherwise: it ends at the same metric."""


class Checkpoint:
    """A file with the progress of one fit, known by its data and parameters."""

    def __init__(
        self,
        path: str | PathLike[str],
        objective: MStepObjective,
        solver: MStepSolver,
        settings: dict[str, Any],
    ) -> None:
        self.path, self.fingerprint = Path(path), fingerprint(objective, solver, settings)
        self.n_features = objective.pairs.n_features

    def save(
        self, history: Sequence[Any], schedule: list[float], state: DescentState | FloatArray
    ) -> None:
        """Replace what the file holds; a run that is killed meanwhile leaves one or the other.

        `schedule` is the last value of J and how exact the next M-step has to be; `state` where the
        descent of an accelerated run is, else the metric of the last M-step.
        """
        matrix, search = state, None
        if isinstance(matrix, DescentState):
            matrix, *search = matrix
        header = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "history": [asdict(iteration) for iteration in history],
            "pace": schedule,
            "search": search,
        }
        content = io.BytesIO()
        np.savez(content, matrix=matrix, header=np.array(json.dumps(header)))
        write_whole(self.path, content.getvalue())

    def load(
        self, kind: type[Any]
    ) -> tuple[list[Any], list[float], DescentState | FloatArray] | None:
        """What the file holds, as it was given to `save`; None where there is no file.

        `kind` is the class of the iterations.
        """
        if not self.path.exists():
            return None
        content = read_regular_file(self.path)
        try:
            arrays = parse_arrays(content)
            header, matrix = json.loads(str(arrays["header"])), arrays["matrix"]
            if header["format"] != FORMAT:
                problem = "is a checkpoint of another version"
            elif header["fingerprint"] != self.fingerprint:
                problem = "is the checkpoint of another fit: its data or its parameters differ"
            else:
                history, schedule, search = (header[key] for key in ("history", "pace", "search"))
                iterations = [kind(**entries) for entries in history]
                numbers = [*schedule, *(search or ())]
                numbers += [v for entries in history for k, v in entries.items() if k != "kind"]
                if (
                    all(type(number) in NUMBER for number in numbers)
                    and (len(schedule), len(search or (0, 0, 0))) == (2, 3)
                    and (matrix.ndim, matrix.dtype.str[1:]) == (2, "f8")
                    and (search is not None or len(matrix) == self.n_features)
                    and np.all(np.isfinite(matrix))
                ):
                    state = matrix if search is None else DescentState(matrix, *search)
                    return iterations, schedule, state
                problem = "is damaged: its parts do not fit together"
        except Exception as error:  # whatever a damaged or a hostile file makes of the parsers
            problem = f"is damaged, or no checkpoint of an alternation ({error})"
        raise ValueError(
            f"{self.path} {problem}. Give another path, or remove the file to start anew."
        )


def fingerprint(objective: MStepObjective, solver: MStepSolver, settings: dict[str, Any]) -> str:
    """A checksum of what the result of a fit depends on; it is the same in every process."""
    pairs, labels = objective.pairs, objective.pairs.labels
    arrays: list[Any] = [pairs.points, labels.members, labels.classes, pairs.drawn]
    if labels.classes is None:
        arrays += [labels.similar, labels.dissimilar, labels.confidence]
    arrays += [objective.soft_labels, objective.previous_metric, objective.manifold_term]
    numbers = [objective.mu, objective.threshold, objective.sharpness, objective.trace_weight]
    blocks = [
        [_class_name(block), _attributes(block), float(block.value(_trial(pairs.n_features)))]
        for block in objective.penalties
    ]
    chosen = _attributes(solver)
    for name in NO_PART_OF_THE_RESULT:
        del chosen[name]
    on_host = [None if array is None else np.asarray(array) for array in arrays]
    everything = [on_host, numbers, blocks, chosen, settings]
    return hashlib.sha256(repr(_described(everything)).encode()).hexdigest()


def _trial(n_features: int) -> FloatArray:
    """A metric by whose penalty two blocks of a user's own are told apart."""
    return np.diag(1.0 + np.arange(n_features) / 7.0)


def _described(value: Any) -> Any:
    """A value as plain data without addresses: a function or another object is its name."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = np.ascontiguousarray(value).tobytes()
        return value.shape, value.dtype.str, hashlib.sha256(content).hexdigest()
    if isinstance(value, Mapping):
        return sorted((str(key), repr(_described(value[key]))) for key in value)
    if isinstance(value, list | tuple):
        return [_described(part) for part in value]
    if value is None or isinstance(value, str | bytes | complex | float | int | np.generic):
        return value
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return _class_name(value)


def _class_name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes by which two objects are compared: those that are not private."""
    return {key: part for key, part in vars(value).items() if not key.startswith("_")}

"""Where an alternation is, in a file: a run that was killed goes on from there."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..model.m_step_objective import MStepObjective
from ..numerics.checks import FloatArray
from ..processes.whole_file import write_whole
from .steps import Place

FORMAT = "seraph-cvx checkpoint 1"


@dataclass(frozen=True, eq=False)
class Progress:
    """What an alternation needs to go on as if it had not been interrupted.

    Attributes
    ----------
    history : list of dict
        The iterations so far.
    pace : list of float
        The last value of J, and how exact the next M-step has to be.
    at : Place or (m, m) array
        Where the descent of an accelerated run is; else the metric of the last M-step.
    """

    history: list[dict[str, Any]]
    pace: list[float]
    at: Place | FloatArray


@dataclass(frozen=True)
class Checkpoint:
    """A file with the progress of one fit.

    Attributes
    ----------
    path : Path
    fingerprint : str
        Of the data and of all parameters of the fit, see :func:`fingerprint`.
    """

    path: Path
    fingerprint: str

    def save(self, progress: Progress) -> None:
        """Replace what the file holds; a run that is killed meanwhile leaves one or the other."""
        matrix, search = progress.at, None
        if isinstance(matrix, Place):
            matrix, *search = matrix
        told = {"history": progress.history, "pace": progress.pace, "search": search}
        header = json.dumps({"format": FORMAT, "fingerprint": self.fingerprint} | told)
        content = io.BytesIO()
        np.savez(content, matrix=matrix, header=np.array(header))
        write_whole(self.path, content.getvalue())

    def load(self) -> Progress | None:
        """The progress that the file holds; None where there is no file."""
        if not self.path.exists():
            return None
        cure = "Give another path, or remove the file to start anew."
        try:
            with np.load(io.BytesIO(self.path.read_bytes()), allow_pickle=False) as stored:
                header, matrix = json.loads(str(stored["header"])), stored["matrix"]
            keys = ("format", "fingerprint", "history", "pace", "search")
            version, of_fit, history, pace, search = (header[key] for key in keys)
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"{self.path} is damaged, or no checkpoint of an alternation ({error}). {cure}"
            ) from error
        if version != FORMAT:
            raise ValueError(f"{self.path} is a checkpoint of another version. {cure}")
        if of_fit != self.fingerprint:
            raise ValueError(
                f"{self.path} is the checkpoint of another fit: its data or its parameters differ. "
                + cure
            )
        return Progress(history, pace, matrix if search is None else Place(matrix, *search))


def fingerprint(objective: MStepObjective, settings: dict[str, Any]) -> str:
    """A checksum of the first M-step of a fit, with its data, and of the other settings.

    Examples
    --------
    >>> from seraph_cvx import MStepObjective, PairSet
    >>> pairs = PairSet.from_labels([[0.0], [0.2], [2.0]], [0, 0, 1])
    >>> one, other = (MStepObjective(pairs, threshold=eta) for eta in (1.0, 2.0))
    >>> fingerprint(one, {}) == fingerprint(one, {}), fingerprint(one, {}) == fingerprint(other, {})
    (True, False)
    """
    pairs, labels = objective.pairs, objective.pairs.labels
    digest = hashlib.sha256()
    metric = np.diag(1.0 + np.arange(pairs.n_features) / 7.0)
    arrays: list[Any] = [pairs.points, labels.members, labels.classes, pairs.drawn]
    if labels.classes is None:
        arrays += [labels.similar, labels.dissimilar, labels.confidence]
    for array in [*arrays, objective.soft_labels, objective.previous_metric, objective.regulariser]:
        digest.update(b"none" if array is None else repr(np.shape(array)).encode())
        digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    numbers = [objective.mu, objective.threshold, objective.sharpness]
    blocks = [(repr(block), float(block.value(metric))) for block in objective.penalties]
    digest.update(repr((numbers, blocks, sorted(settings.items()))).encode())
    return digest.hexdigest()

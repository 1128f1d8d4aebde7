"""Readable names for the instances of a race."""

from __future__ import annotations

from ...race.instance_penalties import split_word
from ...race.suite import InstanceSpec

SCALINGS = {"standard": "standardized", "unit": "scaled to [0,1]", "raw": "in raw units"}


def instance_in_words(name: str) -> str:
    """Describe an instance, without what is the same in most of them.

    Not said are 10 labeled points, a trace weight of 1 and seed 0. A name that is not of a suite
    stays as it is.

    Examples
    --------
    >>> instance_in_words("wine-n40-standard-hyper-w1-s0")
    'wine, 40 points, standardized, hyper'
    >>> instance_in_words("iris-n40-l20-raw-proj-w0.1-s3-ridge10")
    'iris, 40 points, 20 labeled, in raw units, proj, weight 0.1, seed 3, ridge 10'
    >>> instance_in_words("my own")
    'my own'
    """
    try:
        spec = InstanceSpec.parse(name)
    except ValueError:
        return name
    parts = [spec.data.replace("_", " "), f"{spec.n_points} points"]
    parts += [f"{spec.n_labeled} labeled"] if spec.n_labeled != 10 else []
    parts += [SCALINGS[spec.scaling], spec.setting]
    parts += [f"weight {spec.trace_weight:g}"] if spec.trace_weight not in (0.0, 1.0) else []
    parts += [f"seed {spec.seed}"] if spec.seed else []
    if spec.penalty:
        penalty, number = split_word(spec.penalty)
        parts.append(f"{penalty} {number:g}" if number else penalty)
    return ", ".join(parts)

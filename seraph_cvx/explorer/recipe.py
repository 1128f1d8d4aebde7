"""The Python code that reproduces a state of the page, without the page."""

from __future__ import annotations

from collections.abc import Iterable

from .snapshot import Snapshot

PER_LINE = 4


def python_of(state: Snapshot) -> str:
    """Write Python code that makes the M-steps (11) and E-steps (10) of the page.

    It defines `metric`, `objective` and `certificate`, equal to those of the page to the last
    digit, and prints the metric and its gap.

    Examples
    --------
    >>> from seraph_cvx.explorer.state import ExplorerState
    >>> names = {}
    >>> state = ExplorerState().forward()
    >>> exec(python_of(state), names)
    metric [[...
    relative gap ...
    >>> bool((names["metric"] == state.half_step.metric).all())
    True
    """
    half_step = state.half_step
    if half_step is None:
        return f"# {state.trouble}\n"
    settings = state.settings
    lines = [
        f'"""SERAPH on {len(state.scene.points)} points in the plane: {half_step.name}."""',
        "",
        "import numpy as np",
        "",
        "from seraph_cvx import MStepObjective, PairSet, certify, solve_m_step",
        "",
        "X = np.array([",
        *_rows(f"[{a!r}, {b!r}]" for a, b in state.scene.points),
        "])",
        "y = np.array([  # -1: unknown",
        *_rows(map(str, state.scene.labels), 25),
        "])",
        "pairs = PairSet.from_labels(X, y)",
        f'mu = {settings.weight_factor!r} * pairs.resolve_unlabeled_weight("ratio")',
        "",
        "",
        "def program(metric):",
        '    """The M-step (11) with the soft labels (10) of `metric`; None: q(-1) = 1."""',
        "    return MStepObjective(",
        "        pairs, previous_metric=metric, unlabeled_weight=mu,",
        f"        trace_weight={settings.trace_weight!r}, threshold={settings.threshold!r},",
        f"        sharpness={settings.sharpness!r},",
        "    )",
        "",
        "",
        *_steps(half_step.number),
        "certificate = certify(objective, metric)",
        'print("metric", metric.tolist())',
        'print("relative gap", certificate.relative_gap)',
    ]
    return "\n".join(lines) + "\n"


def _steps(number: int) -> list[str]:
    if number == 0:
        return ["metric, objective = np.eye(2), program(None)"]
    lines = [
        "metric = None",
        f"for _ in range({(number + 1) // 2}):",
        "    objective = program(metric)  # the E-step",
        "    metric = solve_m_step(objective, start=metric).metric",
    ]
    return [*lines, "objective = program(metric)  # the last E-step"] if number % 2 == 0 else lines


def _rows(items: Iterable[str], per_line: int = PER_LINE) -> list[str]:
    texts = list(items)
    starts = range(0, len(texts), per_line)
    return ["    " + ", ".join(texts[k : k + per_line]) + "," for k in starts]

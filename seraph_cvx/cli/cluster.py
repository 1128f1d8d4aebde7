"""The option that sends the work of a command to a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a Dask cluster: its scheduler's address, or local for two processes here.",
    ),
]


def on_cluster(scheduler: str | None) -> AbstractContextManager[Any]:
    """Within it joblib's work is done there; None: here."""
    if scheduler is None:
        return nullcontext()
    from ..experiments.runs.dask_cluster import dask_cluster

    return dask_cluster(None if scheduler == "local" else scheduler)

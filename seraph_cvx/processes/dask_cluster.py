"""A Dask cluster for joblib's work: a running one, or two processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import joblib

from ..numerics.checks import MissingExtra


@contextmanager
def dask_cluster(scheduler: str | None = None, n_workers: int = 2) -> Iterator[Any]:
    """Let Dask do joblib's work: the sums of a fit, the runs of a table, a race."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra(
            'A Dask cluster needs the package distributed: pip install "seraph-cvx[dask]".'
        ) from None
    make_client: Any = distributed.Client
    make_cluster: Any = distributed.LocalCluster
    with ExitStack() as stack:
        address: Any = scheduler
        if address is None:
            cluster = make_cluster(
                n_workers=n_workers, threads_per_worker=1, dashboard_address=None
            )
            address = stack.enter_context(cluster)
        client = stack.enter_context(make_client(address))
        stack.enter_context(joblib.parallel_config(backend="dask"))
        yield client

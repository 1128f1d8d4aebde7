"""The `seraph-cvx` command itself, and options that several of its commands share."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer
import typer.core

from .. import __version__
from .report import say, wants_traceback

COMMANDS = (
    "demo",
    "fit",
    "explain",
    "verify",
    "explore",
    "compare",
    "export",
    "reproduce",
    "bench",
)
"""The commands in the order in which people come to use them."""


class OrderOfUse(typer.core.TyperGroup):
    """Lists the commands in the order of their use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return sorted(super().list_commands(ctx), key=COMMANDS.index)


app = typer.Typer(
    cls=OrderOfUse,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the boxes leave little room for the sentences
)
EXAMPLES = """\b
Examples:
  seraph-cvx demo
  seraph-cvx fit flowers.csv --label species
  seraph-cvx fit flowers.csv --label species --trace-weight 5 --out metric.npz
  seraph-cvx fit flowers.csv --label species --picture flowers.png

\b
Exit codes:
  0 certified (direct: stationary)   1 a result, but neither   2 an error   130 interrupted"""


def show_version(wanted: bool) -> None:
    if wanted:
        say(f"seraph-cvx {__version__}")
        raise typer.Exit


def remember_debug(context: typer.Context, wanted: bool) -> None:
    """Remember --debug, which may be given before the command or after it."""
    wants_traceback.set(wanted or (context.parent is not None and wants_traceback.get()))


Debug = Annotated[
    bool,
    typer.Option("--debug", callback=remember_debug, help="Show the Python traceback of an error."),
]


Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Use a Dask cluster: its scheduler's address, or local for two local processes.",
    ),
]


def on_cluster(scheduler: str | None) -> AbstractContextManager[Any]:
    """A context in which joblib uses a Dask cluster; None: this machine alone."""
    if scheduler is None:
        return nullcontext()
    from ..experiments.runs.dask_cluster import dask_cluster

    return dask_cluster(None if scheduler == "local" else scheduler)


@app.callback(epilog=EXAMPLES)
def seraph(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Debug = False,
) -> None:
    """Learn a distance from a few class labels and many points without one (SERAPH).

    The result comes with a certificate: a proof of how far it can be from the optimum.
    """

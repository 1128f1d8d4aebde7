"""The `seraph-cvx` command itself, and options that several of its commands share."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer
import typer.core

from .. import __version__
from .report import say, wants_traceback

COMMANDS = (
    "demo",
    "fit",
    "apply",
    "explain",
    "verify",
    "compare",
    "explore",
    "check-exercise",
    "export",
)
"""The commands in the order in which people come to use them."""


class Commands(typer.core.TyperGroup):
    """Lists the commands in the order of their use; the name of a command may be two words."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return sorted(super().list_commands(ctx), key=COMMANDS.index)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph of each command's help, whole."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            words = inspect.cleandoc(getattr(command, "help", None) or "").partition("\n\n")[0]
            rows.append((name, " ".join(words.split())))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first two words name, or else the first one."""
        both = " ".join(args[:2])
        return super().resolve_command(ctx, [both, *args[2:]] if both in self.commands else args)


class Panels(typer.core.TyperCommand):
    """Lists the options in groups, each under the title that its `rich_help_panel` names."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the groups in the order of their first options."""
        groups: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                is_argument = parameter.param_type_name == "argument"
                panel = getattr(parameter, "rich_help_panel", None) or "Other options"
                groups.setdefault("Arguments" if is_argument else panel, []).append(record)
        groups["Other options"] = groups.pop("Other options", [])
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the boxes leave little room for the sentences
    context_settings={"max_content_width": 100},
)
EXAMPLES = """\b
Examples:
  seraph-cvx demo
  seraph-cvx fit flowers.csv --label species --out metric.npz
  seraph-cvx apply metric.npz more-flowers.csv --predict

\b
Exit codes:
  0 certified (direct: stationary)   1 not certified, or all distances zero
  2 an error                         130 interrupted"""


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
    from ..processes.dask_cluster import dask_cluster

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

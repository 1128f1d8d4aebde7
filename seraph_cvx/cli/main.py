"""The `seraph-cvx` command itself, and options that several of its commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints

import typer
import typer.core

from .. import __version__
from .messages import answers_in_words, say, wants_traceback

COMMANDS = (
    *("demo", "fit", "apply", "explain", "verify", "certify", "check", "compare"),
    *("explore", "check-exercise", "export"),
)
"""The commands in the order in which people come to use them."""

FIRST, TABLE = "What most people need", "Reading the table"
"""The first panels of the options of `fit`; `apply` has the second one, too."""


class Commands(typer.core.TyperGroup):
    """Lists the commands in the order of their use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return sorted(super().list_commands(ctx), key=COMMANDS.index)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; an error about an option has no prefix of the library that typer asks."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first paragraph of each command's help, whole."""
        rows = []
        for name in self.list_commands(ctx):
            help_text = inspect.cleandoc(getattr(self.get_command(ctx, name), "help", None) or "")
            rows.append((name, " ".join(help_text.partition("\n\n")[0].split())))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


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
    rich_markup_mode=None,  # plain help: the boxes leave little space for the sentences
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
  2 an error                         130 interrupted, 143 terminated"""


def show_version(wanted: bool) -> None:
    if wanted:
        say(f"seraph-cvx {__version__}")
        raise typer.Exit


def remember_debug(context: typer.Context, wanted: bool) -> None:
    """Remember --debug, which may be given before the command or after it."""
    wants_traceback.set(wanted or (context.parent is not None and wants_traceback.get()))


def option(default: Any, words: str, *flags: str, **more: Any) -> Any:
    """An option of a command that the help describes in these words."""
    return typer.Option(default, *flags, help=words, **more)


def listed(panel: str, words: str, *flags: str, **more: Any) -> Any:
    """A field of a group of options, which the help lists in a panel with these words."""
    return typer.Option(*flags, help=words, rich_help_panel=panel, **more)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take options in groups: dataclasses, each of whose fields is an option."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if is_dataclass(parameter.annotation):
            groups[parameter.name] = group = parameter.annotation
            hints = get_type_hints(group, include_extras=True)
            for field in fields(group):
                default = [] if field.default is MISSING else field.default
                option = inspect.Parameter(
                    field.name, parameter.kind, default=default, annotation=hints[field.name]
                )
                parameters.append(option)
        else:
            parameters.append(parameter)

    @wraps(command)
    def run(**given: Any) -> None:
        with answers_in_words():
            for name, group in groups.items():
                own = {field.name: given.pop(field.name) for field in fields(group)}
                given[name] = group(**own)
        command(**given)

    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    run.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in by_name}
    return run


def argument(default: Any, words: str, **more: Any) -> Any:
    """An argument of a command that the help describes in these words."""
    return typer.Argument(default, help=words, **more)


DEBUG = option(False, "Show the Python traceback of an error.", "--debug", callback=remember_debug)


@app.callback(epilog=EXAMPLES)
def seraph(
    version: bool = option(
        False, "Show the version.", "--version", callback=show_version, is_eager=True
    ),
    debug: bool = DEBUG,
) -> None:
    """Learn a distance from a few class labels and many points without one (SERAPH).

    The result comes with a certificate: a proof of how far it can be from the optimum.
    """

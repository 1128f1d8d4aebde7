"""`seraph-cvx check-exercise`: say what is wrong with a student's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..main import Debug, app
from ..report import alert, answers_in_words, say
from ..tables.files import require_file


@app.command(
    "check-exercise", epilog="Example:  seraph-cvx check-exercise 4 exercise_4_weak_duality.py"
)
def check_exercise(
    number: Annotated[int, typer.Argument(min=1, max=8, help="The number of the exercise.")],
    file: Annotated[Path, typer.Argument(help="Your file. It is run, as by Python.")],
    time_limit: Annotated[
        float, typer.Option(min=1.0, help="Seconds that the file may take.")
    ] = 300.0,
    debug: Debug = False,
) -> None:
    """Check your solution of an exercise, and say what is wrong with it.

    The exercises are in examples/exercises. Exit code 0: solved; 1: not yet; 2: an error.
    """
    with answers_in_words():
        from .grading import grade

        require_file(file)
        graded = grade(number, file, time_limit)
        if not graded.is_solved:
            alert(graded.message)
            raise typer.Exit(1)
        say(f"{graded.message}\n\nExercise {number} is solved: all checks hold.")

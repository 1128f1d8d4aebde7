"""The files of each table and figure, as texts by name: Markdown for people, CSV for programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from seraph_cvx.datasets import Sampling

from ..protocol.protocol_evidence import sampling_evidence, scaling_evidence
from ..protocol.tasks import Task
from .acceptance import duel_table, judge, judgment_table
from .figures import LearnedPanel, panels_table, points_table
from .summaries import Rows, Summary
from .tables import (
    Times,
    errors_table,
    read_errors,
    read_times,
    table1,
    table2,
    table2_reasons,
    times_table,
    to_csv,
)


def table1_files(
    tasks: Sequence[Task],
    variant: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    n_draws: int = 2_000,
) -> dict[str, str]:
    """The files of Table 1."""
    table = table1(tasks, n_draws, variant, data_dir)
    return {"table1.md": table.to_markdown() + "\n", "table1.csv": to_csv(table.rows)}


def protocol_files(
    tasks: Sequence[Task],
    n_samplings: int = 50,
    variant: str | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    n_draws: int = 2_000,
) -> dict[str, str]:
    """The file with the evidence for each scaling, and for each way of drawing labels."""
    tables = (
        sampling_evidence(tasks, n_draws, data_dir),
        scaling_evidence(tasks, n_samplings, data_dir=data_dir, variant=variant),
    )
    return {"protocol.md": "\n\n".join(table.to_markdown() for table in tables) + "\n"}


def table2_files(summaries: Sequence[Summary]) -> dict[str, str]:
    """The files of Table 2, with the reasons for missing runs."""
    parts = [block.to_markdown() for block in table2(summaries)]
    reasons = table2_reasons(summaries)
    if reasons.rows:
        parts.append(reasons.to_markdown())
    text = "\n\n".join(parts) + "\n"
    return {"table2.md": text, "table2.csv": to_csv([asdict(summary) for summary in summaries])}


def judgment_files(rows: Rows) -> dict[str, str]:
    """The file of verdicts on the recommended settings; none if every task lacks runs."""
    judgments = judge(rows)
    if not judgments:
        return {}
    tables = (judgment_table(judgments), duel_table(rows))
    text = "\n\n".join(table.to_markdown() for table in tables) + "\n"
    return {"judgment.md": text}


def judgment_again(folder: str | os.PathLike[str]) -> dict[str, str]:
    """The file of verdicts, from the errors.csv that Table 2 left in a folder."""
    path = Path(folder) / "errors.csv"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: run  run.py table2  first.")
    texts = judgment_files(read_errors(path.read_text(encoding="utf-8")))
    if not texts:
        raise ValueError(
            f"{path} has no task with every method on the same two or more samplings: run "
            "run.py table2 with all methods."
        )
    return texts


def errors_files(rows: Rows) -> dict[str, str]:
    """The file of errors behind Table 2, from which its tests can be repeated."""
    return {"errors.csv": to_csv(errors_table(rows))}


def figure3_files(summaries: Sequence[Summary]) -> dict[str, str]:
    """The files of the numbers in Figure 3."""
    table = times_table(summaries)
    return {"figure3.md": table.to_markdown() + "\n", "figure3.csv": to_csv(table.rows)}


def times_again(folder: str | os.PathLike[str]) -> Times:
    """The times of Figure 3, from the figure3.csv that an earlier run left in a folder."""
    path = Path(folder) / "figure3.csv"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: run  run.py figure3  first.")
    return read_times(path.read_text(encoding="utf-8"))


def sparsity_files(
    figure: int, sampling: Sampling, panels: Sequence[LearnedPanel]
) -> dict[str, str]:
    """The files of the numbers in Figure 1 or 2."""
    return {
        f"figure{figure}.md": panels_table(figure, panels).to_markdown() + "\n",
        f"figure{figure}.csv": to_csv(points_table(sampling, panels).rows),
    }

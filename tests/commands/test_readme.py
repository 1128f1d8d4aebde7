"""The README's code runs and prints what the README says."""

from __future__ import annotations

import contextlib
import io
import re

from seraph_cvx import penalties


def code_and_output(text):
    """Each python block, with the text block that follows it."""
    pattern = r"```python\n(.*?)```\s*```text\n(.*?)```"
    return re.findall(pattern, text, flags=re.DOTALL)


def loose(text):
    """Rounding differs from machine to machine: a gap is compared by its size alone."""
    return re.sub(r"\d+e-(\d+)", "tiny", text).strip()


def test_every_python_block_prints_what_stands_below_it(repository):
    text = (repository / "README.md").read_text(encoding="utf-8")
    blocks = code_and_output(text)
    assert len(blocks) == text.count("```python") == 8
    scope = {}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), scope)
        assert loose(printed.getvalue()) == loose(output)


def test_the_guide_to_modelling_prints_what_stands_below_its_code(repository):
    """A block of code without a text below it prints nothing."""
    page = repository / "examples" / "guide" / "model-your-own.md"
    pattern = r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?"
    blocks = re.findall(pattern, page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 6
    scope = {"__name__": "guide"}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), scope)
        assert loose(printed.getvalue()) == loose(output)


def test_the_guide_to_modelling_has_every_block_in_its_table(repository):
    page = (repository / "examples" / "guide" / "model-your-own.md").read_text(encoding="utf-8")
    blocks = [
        name
        for name in penalties.__all__
        if isinstance(getattr(penalties, name), type)
        and issubclass(getattr(penalties, name), penalties.Penalty)
        and name != "Penalty"
    ]
    assert len(blocks) == 9
    for name in blocks:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}("))
        block = getattr(penalties, name)
        is_linear = block.regulariser is not penalties.Penalty.regulariser
        has_dual = is_linear or block.dual_terms is not penalties.Penalty.dual_terms
        has_balls = is_linear or block.ball_terms is not penalties.Penalty.ball_terms
        is_solvable = block.is_smooth or block.prox is not penalties.Penalty.prox
        said = ["yes" if has_dual else "no", "yes" if has_balls else "no"]
        solvers = "all" if is_linear else "fista, conic" if is_solvable else "conic"
        assert [cell.strip() for cell in row.split(" | ")][-3:] == [
            solvers,
            said[0],
            f"{said[1]} |",
        ]


def test_ci_runs_exactly_the_readmes_commands(repository):
    readme = (repository / "README.md").read_text(encoding="utf-8")
    script = (repository / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for line in readme.splitlines() if ".venv/bin/" in line]
    assert len(commands) == 2
    for command in commands:
        assert command in script.splitlines()


def test_files_the_readme_points_at_exist(repository):
    text = (repository / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    rooms = re.findall(r"`([a-z_/]+(?:\.py|/))`", text.split("## The folders")[1])
    assert linked
    assert rooms
    for path in [*linked, *(f"seraph_cvx/{room}" for room in rooms)]:
        assert (repository / path).exists(), path

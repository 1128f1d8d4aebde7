"""The README's code runs and prints what the README says."""

from __future__ import annotations

import contextlib
import io
import re


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
    assert len(blocks) == text.count("```python") == 6
    scope = {}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), scope)
        assert loose(printed.getvalue()) == loose(output)


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

"""What the commands print in a terminal: nothing broken at the margin, symbols as in formulas."""

from __future__ import annotations

import re

import pytest
from command_line import run, words

from seraph_cvx.cli.messages import encodable, hanging, screen
from seraph_cvx.theory import verification as theory_report
from seraph_cvx.theory.verification import CLAIMS

ASCII_SYMBOLS = r"\b(kappa|lambda|eta|mu|sigma)\b(?!\*? =)|_hat|R\^|\bS u D\b|>=|<=|\bsqrt\("


@pytest.fixture
def columns(monkeypatch):
    """A terminal of 80 columns, without colors."""
    monkeypatch.setattr(screen, "_force_terminal", True)  # FORCE_COLOR would outlast the test
    monkeypatch.setattr(screen, "width", 80)
    assert screen.is_terminal
    return 80


def lines_of(command, columns):
    """What a command prints, each line within the terminal and with symbols."""
    done = run(command)
    assert done.exit_code == 0, done.output
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout)
    lines = [line.rpartition("\r")[2] for line in plain.split("\n")]
    assert max(map(len, lines)) <= columns
    assert not re.search(ASCII_SYMBOLS, "\n".join(lines).partition("recomputed")[0])
    return lines


@pytest.mark.parametrize("statement", ["primal", "dual"])
def test_explain_fits_the_terminal_with_symbols_and_short_numbers(columns, statement):
    lines = lines_of(f"explain --statement {statement}", columns)
    text = "\n".join(lines)
    assert "30 points in ℝ⁴" in text
    assert "└─" in text
    assert "So the problem is convex" in words(text)
    assert "λ" in text
    assert not re.search(r"\d\.\d{5}", text)
    goal = next(k for k, line in enumerate(lines) if line.startswith(("minimize ", "maximize ")))
    more = lines[goal + 1 : lines.index("", goal)]
    assert all(line.startswith(("         ", "subject to ")) for line in more)


def test_verify_says_what_is_false_in_two_columns_and_what_was_skipped(columns, monkeypatch):
    monkeypatch.setattr(theory_report, "CLAIMS", {k: CLAIMS[k] for k in (13, 15)})
    lines = lines_of("verify iris", columns)
    text = "\n".join(lines)
    *_, start = (k for k, line in enumerate(lines) if line.startswith("   claim "))
    parts = lines[start : lines.index("", start)]
    names = [line[3:15].strip() for line in parts]
    expected = ["claim", "formula", "fails", "holds", "for you", "recomputed"]
    assert [name for name in names if name] == expected
    assert "" in names  # some go on, below where they began
    assert words(CLAIMS[15][0].consequence) in words(" ".join(line[15:] for line in parts))
    assert re.search(r"13 The complexity +(of a step +)?skipped", text)
    assert re.search(r"15 Why .* refuted +0\.0744 ", text)  # not by its small residual
    skipped = "Skipped, because slow (--all checks it too): 13. The complexity of a step"
    for phrase in (skipped, "Fails by: how far the numbers are from a claim that is false"):
        assert phrase in words(text)


def test_lines_go_on_as_they_began_in_letters_that_the_terminal_has():
    assert hanging("  a line that is too long", 14) == "  a line that\n  is too long"
    assert encodable("3 similar (𝒮), μ = 1", "ascii") == r"3 similar (S), \u03bc = 1"

"""Evidence: a limit of time and Ctrl-C end a proof, and keep what was proven until then."""

from __future__ import annotations

import cvxpy as cp
import pytest

from seraph_cvx.proof import certify_problem


def smallest_norm() -> cp.Problem:
    x = cp.Variable(3)
    return cp.Problem(cp.Minimize(cp.norm(x - [3, 4, 0])), [cp.sum(x) == 1])


def test_progress_tells_what_is_begun_and_every_step():
    told = []
    certificate = certify_problem(smallest_norm(), progress=told.append)
    assert set(certificate.steps) <= set(told)
    assert told.index("solving with CLARABEL") < told.index("lower bound: correction")


def test_a_limit_that_is_over_at_once_proves_nothing_and_says_so():
    certificate = certify_problem(smallest_norm(), time_limit=1e-9)
    assert (certificate.lower, certificate.upper) == (-float("inf"), float("inf"))
    assert "Nothing is proved" in certificate.claim


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_without_time_is_refused(limit):
    with pytest.raises(ValueError, match="time_limit must be a positive number of seconds"):
        certify_problem(smallest_norm(), time_limit=limit)


def pressed_at(text):
    """A progress that presses Ctrl-C where some text is told."""

    def progress(line: str) -> None:
        if line.startswith(text):
            raise KeyboardInterrupt

    return progress


def test_ctrl_c_in_an_upper_bound_keeps_the_lower_one():
    certificate = certify_problem(smallest_norm(), progress=pressed_at("upper bound: correction"))
    assert certificate.lower == pytest.approx(12.0**0.5, abs=1e-6)
    assert certificate.upper == float("inf")
    assert any("interrupted" in step for step in certificate.steps)


def test_ctrl_c_before_anything_is_proven_is_ctrl_c():
    with pytest.raises(KeyboardInterrupt):
        certify_problem(smallest_norm(), progress=pressed_at("solving"))

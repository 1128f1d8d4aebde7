"""Proven bounds on the optimum of a convex problem of CVXPY, whichever solver answered it.

A proof is a pair of intervals' ends that no rounding error can cross. CVXPY turns the problem into
a conic program in doubles (`program.py`): minimize c'x + x'Px/2 subject to Ax + s = b, s in K.
Multipliers y in K* with A'y + Ph + c = 0 prove a lower bound (`lower_bound.py`), a feasible x an
upper one (`upper_bound.py`). No solver's answer satisfies these equations; it is where a proof
starts (`start.py`). Linear programs are solved in rational numbers, and quadratic ones bracketed
by such linear programs (`linear.py`, `simplex.py`, `rational.py`). For other cones there is a
ladder, tried from the cheap end until the bounds are close (`search.py`):

1. the answer is corrected in the metric of the cones' barriers (`cones.py`, `metric.py`), as sums
   of two doubles (`arithmetic.py`), until a ball around it, proven inside the cones, holds an exact
   solution; that takes one verified Cholesky factorization (`gram.py`, `verified_psd.py`);
2. the same on a face, where multipliers are zero or singular (`faces.py`);
3. an exact solution near the answer, in rational numbers (`exact.py`);
4. the same from points well inside the cones, which Newton's method finds (`center.py`).

Where no bound exists, rays prove that no point is feasible, or that the objective falls forever
(`rays.py`); `conflict.py` finds which constraints cannot hold together. `certify.py` begins and
ends all this, and `problem_certificate.py` says what is claimed; `registration.py` makes it a
method of `problem.solve`, `files.py` reads problems from files, `point.py` encloses the user's own
point (`enclosure.py`), `chord.py` refutes convexity, and `checker.py` checks a written proof, its
own or that of an M-step, without any of the rest. This folder imports nothing else of the package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certify import certify_problem
    from .checker import CheckedCertificate, check_certificate
    from .files import read_problem
    from .problem_certificate import ProblemCertificate
    from .registration import NotCertified, register

HOMES = {"ProblemCertificate": "problem_certificate", "certify_problem": "certify"}
HOMES |= {"NotCertified": "registration", "register": "registration"}
HOMES |= {"CheckedCertificate": "checker", "check_certificate": "checker"}
HOMES |= {"read_problem": "files"}
"""The files of the public names; the arithmetic and the checker are imported without CVXPY."""

__all__ = [
    "CheckedCertificate",
    "NotCertified",
    "ProblemCertificate",
    "certify_problem",
    "check_certificate",
    "read_problem",
    "register",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{HOMES[name]}", __name__), name)

"""The public classes and functions of the package, as the page of the API lists them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = {
    "seraph_cvx": "Estimators, M-steps, certificates, races",
    "seraph_cvx.proof.registration": "Proofs for any convex problem",
    "seraph_cvx.datasets": "Data sets and random samplings of them",
    "seraph_cvx.penalties": "Penalties and constraints on the metric",
    "seraph_cvx.plots": "Pictures of results (extra `plot`)",
    "seraph_cvx.certificate": "Certificates in detail",
    "seraph_cvx.m_step.explain": "Why an M-step is convex",
    "seraph_cvx.race.compare": "Races in detail",
    "seraph_cvx.race.solvers": "The solvers of a race",
}
"""The public modules; an object belongs to the first one that has it."""

RESULTS = [
    "seraph_cvx.solvers.solution.MStepSolution",
    "seraph_cvx.fit.alternation.Alternation",
    "seraph_cvx.fit.alternation.Iteration",
    "seraph_cvx.fit.path.SeraphPath",
    "seraph_cvx.fit.path.PathPoint",
    "seraph_cvx.proof.read_problem",
    "seraph_cvx.proof.problem_certificate.ProblemCertificate",
    "seraph_cvx.proof.conflict.Conflict",
    "seraph_cvx.proof.point.PointReport",
    "seraph_cvx.proof.checker.CheckedCertificate",
    "seraph_cvx.proof.chord.Chord",
    "seraph_cvx.estimators.held_out.HeldOut",
    "seraph_cvx.display.result_table.ResultTable",
    "seraph_cvx.race.race_table.Race",
    "seraph_cvx.race.attempt.Attempt",
    "seraph_cvx.race.attempt.Entrant",
    "seraph_cvx.theory.verification.PaperReport",
    "seraph_cvx.theory.claim.ClaimResult",
    "seraph_cvx.penalties.penalty.Multiplier",
    "seraph_cvx.penalties.penalty.TermPoint",
]
"""Classes that public functions return: nobody imports them, but their attributes are read."""

WRAPPERS = (classmethod, staticmethod)
PROPERTIES = (property, cached_property)


@dataclass(frozen=True)
class Member:
    """A public method or property of a class."""

    name: str
    owner: type
    raw: Any

    @property
    def function(self) -> Any:
        """The function with the signature; None for a property."""
        if isinstance(self.raw, PROPERTIES):
            return None
        return self.raw.__func__ if isinstance(self.raw, WRAPPERS) else self.raw


def is_ours(value: Any) -> bool:
    return value.__module__.partition(".")[0] == "seraph_cvx"


def names_of(module_name: str) -> list[str]:
    """The names in `__all__`, or else the public functions and classes defined in the module."""
    module = import_module(module_name)
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module_name
    ]


def listed_names() -> list[str]:
    """The names, parameters, commands and options that were public before: none may be lost."""
    path = Path(__file__).parent / "public_names.txt"
    return path.read_text(encoding="utf-8").splitlines()


def names_in_modules() -> set[str]:
    """Each name in an `__all__`: of the package, of its folders and of their files."""
    root, names = Path(str(import_module("seraph_cvx").__file__)).parent, set()
    for path in root.rglob("*.py"):
        if re.search(r"^__all__ = ", path.read_text(encoding="utf-8"), re.MULTILINE):
            parts = path.relative_to(root.parent).with_suffix("").parts
            module = ".".join(parts).removesuffix(".__init__")
            names |= {f"{module}.{name}" for name in names_of(module)}
    return names


def public_objects() -> Iterator[tuple[str, str, Any]]:
    """Each public class and function once, with its module and name."""
    seen: set[int] = set()
    for module_name in MODULES:
        module = import_module(module_name)
        for name in names_of(module_name):
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and id(value) not in seen:
                seen.add(id(value))
                yield module_name, name, value


def members(kind: type) -> list[Member]:
    """The public methods and properties that the package gives to a class."""
    found = []
    for name in dir(kind):
        owner = next((base for base in kind.__mro__ if name in vars(base)), None)
        if name.startswith("_") or owner is None or not is_ours(owner):
            continue
        raw = vars(owner)[name]
        if isinstance(raw, WRAPPERS + PROPERTIES) or inspect.isfunction(raw):
            found.append(Member(name, owner, raw))
    return found

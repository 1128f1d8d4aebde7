"""SERAPH, semi-supervised metric learning, as certified convex optimization."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .certificate import certify
from .fit.alternation import alternate
from .m_step.solve import solve_m_step
from .model.m_step_objective import MStepObjective
from .model.posterior import e_step
from .pairs.pair_set import PairSet
from .solvers.solution import OptimumNotAttained, Status

if TYPE_CHECKING:
    from .estimators.half_labeled import LabeledKFold, LabeledOnly, known_accuracy
    from .estimators.kernel_seraph import KernelSERAPH
    from .estimators.pair_seraph import PairSERAPH
    from .estimators.saving import load_model, save_model
    from .estimators.seraph import SERAPH
    from .fit.path import seraph_path
    from .m_step.explain import explain_convexity
    from .m_step.statement import state_m_step
    from .proof import certify_problem, check_certificate
    from .race.compare import compare_solvers
    from .solvers.not_certified import NotCertified
    from .theory.verification import verify_paper

__version__ = "0.2.0"
__all__ = [
    "SERAPH",
    "KernelSERAPH",
    "LabeledKFold",
    "LabeledOnly",
    "MStepObjective",
    "NotCertified",
    "OptimumNotAttained",
    "PairSERAPH",
    "PairSet",
    "Status",
    "alternate",
    "certify",
    "certify_problem",
    "check_certificate",
    "compare_solvers",
    "e_step",
    "explain_convexity",
    "known_accuracy",
    "load_model",
    "save_model",
    "seraph_path",
    "solve_m_step",
    "state_m_step",
    "verify_paper",
]

_LAZY_MODULES = {
    "SERAPH": "estimators.seraph",
    "LabeledKFold": "estimators.half_labeled",
    "LabeledOnly": "estimators.half_labeled",
    "known_accuracy": "estimators.half_labeled",
    "load_model": "estimators.saving",
    "save_model": "estimators.saving",
    "seraph_path": "fit.path",
    "KernelSERAPH": "estimators.kernel_seraph",
    "NotCertified": "solvers.not_certified",
    "PairSERAPH": "estimators.pair_seraph",
    "certify_problem": "proof.certify",
    "check_certificate": "proof.checker",
    "compare_solvers": "race.compare",
    "explain_convexity": "m_step.explain",
    "state_m_step": "m_step.statement",
    "verify_paper": "theory.verification",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: CVXPY and scikit-learn are imported only if needed."""
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LAZY_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet."""
    return sorted(__all__)

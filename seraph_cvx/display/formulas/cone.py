"""The cone of metrics, and the projection onto it."""

from __future__ import annotations

from .formula import Formula

METRIC_CONE = Formula(
    "The cone of metrics",
    "",
    "A PSD <=> v' A v >= 0 for all v",
    r"A \succeq 0 \Leftrightarrow v^\top A v \geq 0 \quad \operatorname{for} \operatorname{all} v",
)

PROJECTION = Formula(
    "The projection onto the cone",
    "",
    "B = sum_i alpha_i u_i u_i'\nP(B) = sum_i max(0, alpha_i) u_i u_i'",
    r"B = \sum_{i} \alpha_i u_i u_i^\top"
    "\n"
    r"P(B) = \sum_{i} \max(0, \alpha_i) u_i u_i^\top",
    "alpha_i: the eigenvalues of the symmetric matrix B; u_i: its orthonormal eigenvectors",
)

PROJECTION_CONDITIONS = Formula(
    "When A is the projection of B",
    "",
    "A = P(B) <=> A PSD,  A - B PSD,  <A, A - B> = 0",
    r"A = P(B) \Leftrightarrow A \succeq 0 , \quad A - B \succeq 0 , \quad"
    r" \langle A, A - B \rangle = 0",
)

OTHER_METRICS = Formula(
    "Any other metric is further away",
    "",
    "||C - B||^2 = ||C - A||^2 + ||A - B||^2\n + 2 <C - A, A - B>",
    r"\|C - B\|^2 = \|C - A\|^2 + \|A - B\|^2"
    "\n"
    r"+ 2 \langle C - A, A - B \rangle",
)

CONE_INFIMUM = Formula(
    "The smallest inner product with a metric",
    "",
    "M PSD => inf_{A PSD} <M, A> = 0",
    r"M \succeq 0 \Rightarrow \inf_{A \succeq 0} \langle M, A \rangle = 0",
    "for every other symmetric M the infimum is minus infinity",
)

INNER_PRODUCT = Formula(
    "The inner product with a metric",
    "",
    "A = sum_i alpha_i u_i u_i' => <M, A> = sum_i alpha_i u_i' M u_i",
    r"A = \sum_{i} \alpha_i u_i u_i^\top \Rightarrow"
    r" \langle M, A \rangle = \sum_{i} \alpha_i u_i^\top M u_i",
    "alpha_i: the eigenvalues of A; u_i: its orthonormal eigenvectors",
)

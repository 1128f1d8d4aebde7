"""A formula in several notations."""

from __future__ import annotations

from dataclasses import dataclass

from ..mathml import to_mathml, to_text


@dataclass(frozen=True)
class Formula:
    """A formula in LaTeX and ASCII, and the notations derived from them.

    Attributes
    ----------
    name : str
        What it is.
    equation : str
        Its number in the paper, as "(11)"; empty if it is not in the paper.
    ascii : str
        For a terminal; one line of the formula a line of text.
    latex : str
        The same lines, in the subset of LaTeX that :mod:`seraph_cvx.display.mathml` reads.
    where : str
        What the letters mean that the formula does not define.

    Examples
    --------
    >>> from seraph_cvx.display.formulas import M_STEP_ONE_TERM
    >>> M_STEP_ONE_TERM.title
    'The M-step with one logistic term a pair (11)'
    >>> print(M_STEP_ONE_TERM.ascii.splitlines()[0])
    min_{A PSD} f(A) = sum_k c_k ln(1 + e^{s_k}) - <G, A> + eta beta + <R, A>
    """

    name: str
    equation: str
    ascii: str
    latex: str
    where: str = ""

    @property
    def title(self) -> str:
        """The name, and the equation number where there is one."""
        return f"{self.name} {self.equation}".rstrip()

    @property
    def mathml(self) -> str:
        """The formula as MathML, one display ``<math>`` element per line."""
        return "".join(map(to_mathml, self.latex.splitlines()))

    @property
    def text(self) -> str:
        """The formula as plain text, with Unicode symbols."""
        return "\n".join(map(to_text, self.latex.splitlines()))

"""The one function that is minimized: losses of pairs plus a linear term, over the PSD cone.

    Phi(A) = sum_{S u D} c_k phi_1(s_k) + mu sum_U phi_2(s_k) + <M, A> - constant,
    s_k = v_k'Av_k - eta.

The M-step (11), the alternation's J and the paper's objective (7) differ in the scalar function
phi_2 (`pair_losses.py`) and in M. Each is available in any coordinates of the data, as a function
of the metric A, and as a function of a factor L of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from ..engine.blocks import PairBatch
from ..engine.cluster_sums import ClusterSums, Losses
from ..engine.device.device_face import MOST_COLUMNS, DeviceFace, DeviceFaces
from ..engine.drawn_pairs import DrawnPairs, HeldPoints
from ..engine.face.all_pairs import AllPairs
from ..engine.face.layout import FaceLayout
from ..engine.face.listed_pairs import ListedPairs
from ..engine.face_sums import Bending, FacePairs, FactorPass, PairLoss
from ..engine.pair_sums import PairSums
from ..numerics.arrays import Array, face_kernels
from ..numerics.checks import FloatArray, IntArray
from ..numerics.psd_cone import symmetrize
from .pair_losses import LOGISTIC

MANY_POINTS = 4_000
"""Points beyond which second derivatives are not of all pairs but of the pairs of some points."""

FEW_POINTS = 3_000
"""The number of those points."""

KEPT_POINTS = 6_000
"""Points up to which a search over weights of features keeps all pairs."""


@dataclass(frozen=True)
class LossTerms:
    """The terms of a sweep over pairs: a loss and, as weights, its derivative."""

    loss: PairLoss
    threshold: float
    with_weights: bool

    def __call__(self, batch: PairBatch, d: Array) -> tuple[list[Any], list[Array] | None]:
        """Sum the loss over a batch of pairs, and return its derivatives."""
        total, slope = self.loss.swept(d, self.threshold, self.with_weights, batch.confidence)
        return [total], None if slope is None else [slope]


@dataclass(frozen=True, eq=False)
class PairProgram:
    """The function Phi in one set of coordinates.

    Attributes
    ----------
    sums : PairSums
        The pairs, in these coordinates.
    unlabeled_weight, threshold : float
        mu and eta.
    recession : (m, m) array
        M.
    constant : float
    loss : PairLoss
        phi_2, of the unlabeled pairs.
    """

    sums: PairSums
    unlabeled_weight: float
    threshold: float
    recession: FloatArray
    constant: float
    loss: PairLoss = LOGISTIC

    def value(self, A: FloatArray) -> float:
        """The value Phi(A)."""
        return self._evaluate(A, with_gradient=False)[0]

    def value_and_gradient(self, A: FloatArray) -> tuple[float, FloatArray]:
        """The value Phi(A) and the gradient M + sum_k c_k phi'(s_k) v_k v_k', in one sweep."""
        return self._evaluate(A, with_gradient=True)

    def at(self, L: FloatArray) -> FacePoint:
        """Phi and its slope at a factor L, in one pass over the pairs."""
        device, remote = self.device_faces, self.sums.remote_sums
        if device is not None and L.shape[1] <= MOST_COLUMNS:
            there = device.pass_at(L)
            derivatives = there.slope, lambda: there.gradient, lambda: there.bending
            return self._point(L, there.total, there.excess, *derivatives)
        if isinstance(remote, ClusterSums) and remote.is_available and self.unlabeled_weight > 0.0:
            losses = Losses(self.loss, self.unlabeled_weight, LOGISTIC, self.threshold)
            total, excess, slope = remote.pass_at(L, losses)
            push = cache(lambda: remote.pass_at(L, losses, with_gradient=True).matrix)
            return self._point(L, total, excess, slope, push, partial(self._bending, L, push))
        if self.sums.is_remote:
            value, gradient = self.value_and_gradient(L @ L.T)
            few = partial(self._remote_bending, L, lambda: gradient - self.recession)
            return FacePoint(self, L, value, 2.0 * gradient @ L, lambda: gradient, few)
        here = self._face.pass_at(L, keep=not self._is_large)
        total, excess, slope = here.at_points.total, here.at_points.excess, here.slope
        push = cache(lambda: here.gradient)
        bending = partial(self._bending, L, push) if self._is_large else lambda: here
        return self._point(L, total, excess, slope, push, bending)

    def _point(
        self,
        L: FloatArray,
        total: float,
        excess: float,
        slope: FloatArray,
        make_gradient: Callable[[], FloatArray],
        make_bending: Callable[[], Bending],
    ) -> FacePoint:
        """Add the linear term to the sums of a pass over the pairs."""
        linear = self.recession @ L
        return FacePoint(
            self,
            L,
            total + float(np.vdot(linear, L)) - self.constant,
            2.0 * (slope + linear),
            lambda: symmetrize(make_gradient() + self.recession),
            make_bending,
            excess,
        )

    def at_weights(self, w: FloatArray) -> WeightsPoint:
        """Phi at the metric Diag(w), with derivatives with respect to the weights of the features.

        A pass costs n^2 m, and no eigenvalue. Second derivatives are of all pairs, which are kept.
        """
        face, M, used = self._face, np.diag(self.recession), w > 0.0
        found = face.pairs.at(face.X[:, used] * np.sqrt(w[used]), face.threshold)

        def bent(d: FloatArray) -> FloatArray:
            moved, bend = d != 0.0, np.zeros_like(d)
            bend[moved] = found.bent_weights(face.X[:, moved], d[moved])
            return bend

        return WeightsPoint(
            found.total + float(M @ w) - self.constant,
            np.einsum("ij,ij->j", face.X, found.laplacian(face.X)) + M,
            bent,
        )

    @property
    def is_in_memory(self) -> bool:
        """Whether all pairs are summed in this process, and their weights can be kept."""
        return not self.sums.is_remote and self.sums.n_points <= KEPT_POINTS

    @property
    def reach(self) -> float:
        """The size <C, A> of a metric A whose mean squared distance is 1 + eta.

        It is (1 + eta) sum_k c_k.
        """
        labels, c = self.sums.labels, self.sums.labels.confidence
        labeled = float(labels.n_labeled) if c is None else float(np.sum(c))
        return (1.0 + self.threshold) * (labeled + self.unlabeled_weight * self.sums.n_unlabeled)

    def _bending(self, L: FloatArray, make_gradient: Callable[[], FloatArray]) -> Bending:
        """Second derivatives at L, estimated from some points, given the gradient of all pairs."""
        few = self._few.pass_at(L)
        return _SampledBending(few, make_gradient() - few.gradient)

    def _remote_bending(self, L: FloatArray, make_gradient: Callable[[], FloatArray]) -> Bending:
        """The same on a GPU that has kernels for it."""
        face = self._device_face
        if face is None or L.shape[1] > MOST_COLUMNS:
            return self._bending(L, make_gradient)
        return face.few.pass_at(L)

    @cached_property
    def device_faces(self) -> DeviceFaces | None:
        """All pairs on GPUs that have kernels for them; None where there are none."""
        if isinstance(self.sums.remote_sums, DrawnPairs) or self._device_face is None:
            return None
        return DeviceFaces.of(self._device_face)

    @cached_property
    def _device_face(self) -> DeviceFace | None:
        """All pairs on the GPU that holds the points, if it has kernels for them."""
        remote, mu, known = self.sums.remote_sums, self.unlabeled_weight, self.sums.labels
        if not isinstance(remote, HeldPoints) or mu == 0.0 or not known.is_complete:
            return None
        if face_kernels(remote.points) is None:
            return None
        points = remote.labeled_first(known.members)
        return DeviceFace(points, len(known.members), self.loss, LOGISTIC, mu, self.threshold)

    @property
    def _is_large(self) -> bool:
        return self.sums.n_points > MANY_POINTS

    @cached_property
    def _face(self) -> _Face:
        return _Face.of(self, np.arange(self.sums.n_points))

    @cached_property
    def _few(self) -> _Face:
        """Some points, each standing for several; all of them where they are few."""
        n = self.sums.n_points
        if not self._is_large:
            return self._face
        rng = np.random.default_rng(0)
        is_labeled = np.zeros(n, dtype=bool)
        is_labeled[self.sums.labels.members] = True
        kept, stand_for = [], np.ones(n)
        for group in (np.flatnonzero(is_labeled), np.flatnonzero(~is_labeled)):
            some = rng.permutation(group)[:FEW_POINTS]
            stand_for[some] = len(group) / max(1, len(some))
            kept.append(some)
        return _Face.of(self, np.sort(np.concatenate(kept)), stand_for)

    def _evaluate(self, A: FloatArray, with_gradient: bool) -> tuple[float, FloatArray]:
        terms = LossTerms(LOGISTIC, self.threshold, with_gradient)
        totals, push, _ = self.sums.over_labeled([A], terms)
        if self.unlabeled_weight > 0.0:
            terms = LossTerms(self.loss, self.threshold, with_gradient)
            more, more_push, _ = self.sums.over_unlabeled([A], terms)
            totals = totals + self.unlabeled_weight * more
            push = push + self.unlabeled_weight * more_push
        value = float(totals[0]) + float(np.vdot(self.recession, A)) - self.constant
        return value, symmetrize(self.recession + push)


@dataclass(frozen=True, eq=False)
class FacePoint:
    """Phi at LL', its slope with respect to L, and its second derivatives along directions.

    `excess` is by how much the paper's objective (7) exceeds J, if Phi is J and the loss knows it.
    """

    program: PairProgram
    L: FloatArray
    value: float
    slope: FloatArray
    make_gradient: Callable[[], FloatArray]
    make_bending: Callable[[], Bending]
    excess: float = np.nan

    @cached_property
    def gradient(self) -> FloatArray:
        """The gradient of Phi with respect to the metric: twice it times L is the slope."""
        return self.make_gradient()

    def bent(self, D: FloatArray) -> FloatArray:
        """How the slope changes along D; an estimate where there are many points."""
        return np.asarray(2.0 * (self._bending.bent(D) + self.program.recession @ D))

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of Phi(LL' + t SS') in t at t = 0; an estimate as above."""
        return self._bending.curvature(S)

    @cached_property
    def _bending(self) -> Bending:
        """A pass over pairs that has second derivatives."""
        return self.make_bending()

    @cached_property
    def steepness(self) -> float:
        """What the slope may be worth, relative to Phi: |slope| |L| / max(1, |Phi|)."""
        slope, L = self.slope, self.L
        size = math.sqrt(np.vdot(slope, slope)) * math.sqrt(np.vdot(L, L))
        return size / max(1.0, abs(self.value))


class _SampledBending(NamedTuple):
    """Second derivatives by the pairs of some points, but for what the gradient of all tells.

    They hold S = sum_k w_k v_k v_k', of which `missing` is the error. An estimate of it will not
    do: S + M is zero on the span of L at an optimum, and the errors would make it indefinite.
    """

    few: FactorPass
    missing: FloatArray

    def bent(self, D: FloatArray) -> FloatArray:
        """The derivative along D of half the gradient with respect to the factor."""
        return self.few.bent(D) + self.missing @ D

    def curvature(self, S: FloatArray) -> float:
        """The second derivative of the sum along SS'."""
        return self.few.curvature(S)


class WeightsPoint(NamedTuple):
    """Phi at weights of the features: value, gradient, and how that changes along d.

    The change is that of the derivatives with respect to weights that d moves; zero for others.
    """

    value: float
    gradient: FloatArray
    bent: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class _Face:
    """Points, those with a label first, and their pairs with the losses."""

    X: FloatArray
    threshold: float
    pairs: FacePairs

    def pass_at(self, L: FloatArray, keep: bool = True) -> FactorPass:
        return FactorPass(self.X, self.pairs.at(self.X @ L, self.threshold, keep))

    @classmethod
    def of(
        cls, program: PairProgram, members: IntArray, stand_for: FloatArray | None = None
    ) -> _Face:
        """Make a face of the points with these numbers; if mu = 0, of those that have a label."""
        sums, mu = program.sums, program.unlabeled_weight
        if mu == 0.0:
            members = np.intersect1d(members, sums.labels.members)
        order, layout = FaceLayout.of(members, sums.labels, sums.n_points)
        X, labels = np.ascontiguousarray(sums.points[order]), layout.labels
        if mu == 0.0 and not labels.is_complete:
            pairs: FacePairs = ListedPairs(labels.listed, len(X), labels.confidence, LOGISTIC)
            return cls(X, program.threshold, pairs)
        loss = program.loss if mu > 0.0 else LOGISTIC
        weights = None if stand_for is None else stand_for[order]
        pairs = AllPairs(layout, loss, mu, LOGISTIC, weights, sums.visit_all)
        return cls(X, program.threshold, pairs)

"""Reads the Conic Benchmark Format and states it in CVXPY; knows nothing of the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

CONES = {"L+", "L=", "Q", "EXP"}


@dataclass(frozen=True)
class ConeFile:
    """What a ``.cbf`` file says: Fx + g in scalar cones, the sum of x_l H_kl and D_k PSD."""

    sense: str
    cost: np.ndarray
    constant: float
    cones: list[tuple[str, int]]
    matrix: np.ndarray
    offset: np.ndarray
    psd_orders: list[int]
    H: np.ndarray
    D: np.ndarray

    def to_cvxpy(self) -> tuple[cp.Problem, list[cp.Constraint]]:
        """The problem, and its PSD constraints."""
        x = cp.Variable(len(self.cost))
        rows, start, triples = sp.csr_array(self.matrix) @ x + self.offset, 0, []
        constraints: list[cp.Constraint] = []
        for kind, size in self.cones:
            part = rows[start : start + size]
            if kind == "EXP":
                triples.append(start)
            elif kind == "Q":
                constraints.append(cp.SOC(part[0], part[1:]))
            else:
                constraints.append(part == 0 if kind == "L=" else part >= 0)
            start += size
        if triples:  # CVXPY 1.8 takes no empty cone
            first = np.array(triples)
            constraints.append(cp.ExpCone(rows[first + 2], rows[first + 1], rows[first]))
        psd = []
        for m, H, D in zip(self.psd_orders, self.H, self.D, strict=True):
            entries = sp.csr_array(H[:, :m, :m].reshape(-1, m * m).T)
            psd.append(cp.reshape(entries @ x, (m, m), order="C") + D[:m, :m] >> 0)
        sense = cp.Minimize if self.sense == "MIN" else cp.Maximize
        return cp.Problem(sense(self.cost @ x + self.constant), constraints + psd), psd

    def metric(self, psd: list[cp.Constraint]) -> np.ndarray | None:
        """The metric in a solution: PSD constraint 0, or the multiplier of the largest one."""
        if self.sense == "MIN":
            return psd[0].args[0].value
        return psd[int(np.argmax(np.count_nonzero(self.H, axis=(1, 2, 3))))].dual_value


def read_cbf(path: str | Path) -> ConeFile:
    """Read a file, or raise a ValueError where it uses what an M-step does not need."""
    lines = Path(path).read_text(encoding="ascii").splitlines()
    parts = "\n".join(line for line in lines if not line.startswith("#")).strip().split("\n\n")
    blocks = {keyword: body for keyword, *body in (part.split("\n") for part in parts)}
    version, (sense,) = blocks.pop("VER"), blocks.pop("OBJSENSE")
    ((free, n),), cones = _cones(blocks.pop("VAR")), _cones(blocks.pop("CON"))
    if version != ["3"] or free != "F" or not {kind for kind, _ in cones} <= CONES:
        raise ValueError(f"{path}: VER {version}, VAR {free} or CON {cones} is not known.")
    n_rows = sum(size for _, size in cones)
    orders = [int(line) for line in blocks.pop("PSDCON", ["0"])[1:]]
    largest = max(orders, default=0)

    def dense(keyword: str, *shape: int) -> np.ndarray:
        count, *body = blocks.pop(keyword, ["0"])
        array = np.zeros(shape)
        for line in body:
            *index, value = line.split()
            array[tuple(map(int, index))] += float(value)
            if len(index) != len(shape):
                raise ValueError(f"{path}: {keyword} announces {len(shape)} indices.")
        if np.count_nonzero(array) != len(body) or len(body) != int(count):
            raise ValueError(f"{path}: {keyword} announces {count} entries.")
        return array

    def psd(keyword: str, *shape: int) -> np.ndarray:
        lower = dense(keyword, len(orders), *shape, largest, largest)
        return lower + np.swapaxes(np.tril(lower, -1), -1, -2)

    program = ConeFile(
        sense,
        dense("OBJACOORD", n),
        float(blocks.pop("OBJBCOORD", ["0.0"])[0]),
        cones,
        dense("ACOORD", n_rows, n),
        dense("BCOORD", n_rows),
        orders,
        psd("HCOORD", n),
        psd("DCOORD"),
    )
    if blocks:
        raise ValueError(f"{path}: the parts {', '.join(blocks)} are not supported.")
    return program


def _cones(lines: list[str]) -> list[tuple[str, int]]:
    (total, count), *body = map(str.split, lines)
    cones = [(kind, int(size)) for kind, size in body]
    if (sum(size for _, size in cones), len(cones)) != (int(total), int(count)):
        raise ValueError(f"{lines[0]!r} announces other cones than follow it.")
    return cones

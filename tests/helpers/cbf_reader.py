"""Reads the Conic Benchmark Format and states it in CVXPY; knows nothing of the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cvxpy as cp
import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class ConeFile:
    """What a ``.cbf`` file says: Fx + g in scalar cones, Hx + D in PSD cones, H and D flattened."""

    sense: str
    cost: np.ndarray
    constant: float
    cones: list[tuple[str, int]]
    matrix: sp.csr_array
    offset: np.ndarray
    psd_orders: list[int]
    psd: list[tuple[sp.csr_array, np.ndarray]]

    def to_cvxpy(self) -> tuple[cp.Problem, list[cp.Constraint]]:
        """The problem, and its PSD constraints."""
        x = cp.Variable(len(self.cost))
        rows, start, triples = self.matrix @ x + self.offset, 0, []
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
        psd = [
            cp.reshape(H @ x + D, (order, order), order="C") >> 0
            for order, (H, D) in zip(self.psd_orders, self.psd, strict=True)
        ]
        sense = cp.Minimize if self.sense == "MIN" else cp.Maximize
        return cp.Problem(sense(self.cost @ x + self.constant), constraints + psd), psd

    def metric(self, psd: list[cp.Constraint]) -> np.ndarray | None:
        """The metric in a solution: PSD constraint 0, or the multiplier of the largest one."""
        if self.sense == "MIN":
            return psd[0].args[0].value
        return psd[int(np.argmax([H.nnz for H, _ in self.psd]))].dual_value


def read_cbf(path: str | Path) -> ConeFile:
    """Read a file, or raise a ValueError where it uses what an M-step does not need."""
    lines = Path(path).read_text(encoding="ascii").splitlines()
    parts = "\n".join(line for line in lines if not line.startswith("#")).split("\n\n")
    blocks = {
        keyword: body for keyword, *body in (part.strip().split("\n") for part in parts if part)
    }
    version, (sense,) = blocks.pop("VER"), blocks.pop("OBJSENSE")
    variables, cones = _cones(blocks.pop("VAR")), _cones(blocks.pop("CON"))
    strange = {kind for kind, _ in cones} - {"L+", "L=", "Q", "EXP"}
    if version != ["3"] or len(variables) > 1 or variables[0][0] != "F" or strange:
        raise ValueError(f"{path}: VER {version}, VAR {variables} or CON {strange} is not known.")
    n, n_rows = variables[0][1], sum(size for _, size in cones)
    orders = [int(line) for line in blocks.pop("PSDCON", ["0"])[1:]]

    def read(keyword: str, n_indices: int) -> tuple[np.ndarray, np.ndarray]:
        count, *body = blocks.pop(keyword, ["0"])
        table = [line.split() for line in body]
        if len(table) != int(count) or any(len(row) != n_indices + 1 for row in table):
            raise ValueError(f"{path}: {keyword} announces {count} entries of {n_indices} indices.")
        index = np.array([row[:-1] for row in table], dtype=np.int64).reshape(-1, n_indices)
        if len(np.unique(index, axis=0)) < len(index):
            raise ValueError(f"{path}: {keyword} has an entry twice.")
        return index.T, np.array([float(row[-1]) for row in table])

    def vector(keyword: str, size: int) -> np.ndarray:
        (index,), value = read(keyword, 1)
        return np.bincount(index, value, size)

    (row, column), value = read("ACOORD", 2)
    matrix = sp.csr_array((value, (row, column)), shape=(n_rows, n))
    H, H_value = read("HCOORD", 4)
    D, D_value = read("DCOORD", 3)
    psd = []
    for number, order in enumerate(orders):
        _, x, i, j = H[:, H[0] == number]
        value = H_value[H[0] == number] * np.where(i == j, 0.5, 1.0)
        both = sum(  # the lower triangle and its transpose
            sp.csr_array((value, (entry, x)), shape=(order**2, n))
            for entry in (i * order + j, j * order + i)
        )
        constant = np.zeros((order, order))
        _, i, j = D[:, D[0] == number]
        constant[i, j] = constant[j, i] = D_value[D[0] == number]
        psd.append((both, constant.ravel()))
    cost, offset = vector("OBJACOORD", n), vector("BCOORD", n_rows)
    shift = float(blocks.pop("OBJBCOORD", ["0.0"])[0])
    if blocks:
        raise ValueError(f"{path}: the parts {', '.join(blocks)} are not supported.")
    return ConeFile(sense, cost, shift, cones, matrix, offset, orders, psd)


def _cones(lines: list[str]) -> list[tuple[str, int]]:
    (total, count), *body = map(str.split, lines)
    cones = [(kind, int(size)) for kind, size in body]
    if (sum(size for _, size in cones), len(cones)) != (int(total), int(count)):
        raise ValueError(f"{lines[0]!r} announces other cones than follow it.")
    return cones

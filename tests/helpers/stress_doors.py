"""Families of ways in: other arrays, arrays written into later, inputs nearly right, estimators."""

from __future__ import annotations

import copy
import pickle
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import array_api_strict
import numpy as np
from stress_closed import optimum_of_one_feature
from stress_extremes import drawn, labels
from stress_instances import Instance, decades, m_step, psd, some_metric, stated
from stress_judge import given
from stress_penalized import BLOCKS, Sizes

import seraph_cvx.estimators.base
import seraph_cvx.fit.path
from seraph_cvx import (
    SERAPH,
    SERAPHCV,
    KernelSERAPH,
    MStepObjective,
    PairSERAPH,
    PairSet,
    alternate,
    certify,
    load_model,
    save_model,
    seraph_path,
    solve_m_step,
)

try:
    import torch
except ImportError:
    torch = None

try:
    import dask.array as dask_array
except ImportError:
    dask_array = None

try:
    import pandas
except ImportError:
    pandas = None


# Arrays of other libraries and other shapes in memory


def memory_map(X):
    """An array on disk; the folder is gone at once, which POSIX allows."""
    with TemporaryDirectory() as folder:
        mapped = np.memmap(Path(folder) / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped


def spread_out(X):
    """A view of every second number, backwards."""
    wide = np.zeros((len(X), 2 * X.shape[1]))
    view = wide[::-1, ::2]
    view[:] = X
    return view


CONTAINERS = {
    "lists": lambda X: X.tolist(),
    "columns": np.asfortranarray,
    "a view": spread_out,
    "a memory map": memory_map,
    "array-api-strict": array_api_strict.asarray,
    "float32 of array-api-strict": lambda X: array_api_strict.asarray(X.astype(np.float32)),
    "float32": lambda X: X.astype(np.float32),
    "big-endian": lambda X: X.astype(">f8"),
    "torch": None if torch is None else lambda X: torch.asarray(X.copy()),
    "float32 of torch": None if torch is None else lambda X: torch.asarray(X.astype(np.float32)),
    "dask": None if dask_array is None else lambda X: dask_array.from_array(X, chunks=(3, 2)),
    "pandas": None if pandas is None else lambda X: pandas.DataFrame(X.copy()),
}


def other_arrays(rng):
    """Points in a container of any library: judged by the same numbers given plainly."""
    kinds = [kind for kind, make in CONTAINERS.items() if make is not None]
    foreign = ["array-api-strict"] + ["torch"] * (torch is not None)
    kind = str(rng.choice(foreign if rng.random() < 0.5 else kinds))
    n, m = int(rng.integers(3, 14)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, m))
    if rng.random() < 0.3:
        X = X * decades(rng, -6, 6, size=m)
    elif rng.random() < 0.4:
        X = X + decades(rng, 0, 8)
    if "float32" in kind:
        X = X.astype(np.float32).astype(np.float64)
    elif rng.random() < 0.1:
        X = X * decades(rng, -140, 140)
    y = labels(rng, n)
    plain = PairSet.from_labels(X, y)
    pairs = PairSet.from_labels(CONTAINERS[kind](X), y if rng.random() < 0.5 else y.tolist())
    if rng.random() < 0.4 and plain.n_unlabeled > 1:
        seed = int(rng.integers(1 << 30))
        k = int(rng.integers(1, plain.n_unlabeled))
        plain, pairs = (one.sampled(k, random_state=seed) for one in (plain, pairs))
    settings = {
        "trace_weight": 0.0 if rng.random() < 0.3 else float(decades(rng, -6, 1)),
        "unlabeled_weight": ["ratio", float(decades(rng, -3, 2))][rng.integers(2)],
    }
    if rng.random() < 0.4:
        settings["previous_metric"] = some_metric(rng, plain, -2, 2)
        settings["sharpness"] = float(decades(rng, -0.3, 1.0))
    if rng.random() < 0.2:
        settings["penalties"] = [BLOCKS["ridge"](rng, m, Sizes(0.0, 0.0))]
    found = Instance(MStepObjective(pairs, **settings), given(plain, **settings))
    if m == 1 and "penalties" not in settings:
        return replace(found, optimum=optimum_of_one_feature(found.given))
    return found


# Arrays that are written into after they were given


def mutated(rng):
    """Everything given is written into, at once or after the first certificate."""
    n, m = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X, y = rng.normal(size=(n, m)), labels(rng, n)
    own = {}
    foreign = [array_api_strict] + [torch] * (torch is not None)
    library = foreign[rng.integers(len(foreign))] if rng.random() < 0.3 else None
    points = own["X"] = X if library is None else library.asarray(X.copy())
    if rng.random() < 0.5:
        own["y"] = y
        pairs = PairSet.from_labels(points, y)
    else:
        rows = np.column_stack(np.triu_indices(n, 1))
        rows = rows[rng.permutation(len(rows))[: int(rng.integers(2, len(rows) + 1))]]
        own["similar"], own["dissimilar"] = rows[:1].copy(), rows[1:].copy()
        own["confidence"] = decades(rng, -1, 1, size=len(rows) - 1)
        pairs = PairSet.from_constraints(
            points, own["similar"], own["dissimilar"], None, own["confidence"]
        )
    settings = {"trace_weight": float(decades(rng, -3, 0)), "unlabeled_weight": 0.5}
    source = rng.integers(4)
    if source == 0:
        settings["soft_labels"] = own["soft labels"] = rng.random(pairs.n_unlabeled)
    elif source == 1:
        settings["previous_metric"] = own["previous metric"] = some_metric(rng, pairs)
    elif source == 2:
        pairs = drawn(rng, pairs)
    if rng.random() < 0.4:
        term = psd(rng, m)
        settings["manifold_term"] = own["manifold term"] = (term + term.T) / 2.0
    blocks, arrays = own_blocks(rng, m)
    own |= arrays
    found = stated(pairs, penalties=blocks, **settings)

    is_bold = rng.random() < 0.5

    def disturb():
        writable = exposed_arrays(found.objective)
        for array in writable.values() if is_bold else []:
            write_into(rng, array)
        for array in own.values():
            write_into(rng, array)
        for block in blocks:
            block.weight = 7.0 * block.weight
        words = f"can be written into: {', '.join(sorted(writable))}"
        return {"exposed arrays": words} if writable else {}

    if rng.random() < 0.5:
        return replace(found, falsehoods=disturb())
    return replace(found, disturb=disturb)


def own_blocks(rng, m):
    """Blocks made of arrays that are kept, and these arrays."""
    from seraph_cvx.penalties import LinearConstraints, LogDet, Ridge, UpperBound

    A = np.diag(decades(rng, -1, 1, size=m))
    B, t = np.array([np.eye(m)]), np.array([float(decades(rng, -1, 1))])
    made = [
        (Ridge, {"weight": 0.3, "prior": A}),
        (LogDet, {"weight": 0.3, "prior": A}),
        (UpperBound, {"bound": A}),
        (LinearConstraints, {"matrices": B, "upper": t}),
    ]
    blocks, arrays = [], {}
    for k in rng.permutation(len(made))[: int(rng.integers(0, 2))]:
        kind, arguments = made[k]
        blocks.append(kind(**arguments))
        arrays |= {
            f"{name} of {kind.__name__}": array
            for name, array in arguments.items()
            if isinstance(array, np.ndarray)
        }
    return blocks, arrays


def write_into(rng, array):
    """Change the numbers of an array of any library, keeping their kind."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        array[...] = rng.permutation(array.ravel()).reshape(array.shape)
    else:
        array[...] = array * 0.25


EXPOSED = {
    "soft_labels",
    "previous_metric",
    "manifold_term",
    "regularizer",
    "pair_moment",
    "label_matrix",
    "whitening",
    "similar_matrix",
    "recession_matrix",
    "soft_label_matrix",
    "falling_direction",
}
OF_PAIRS = {"points", "labeled", "unlabeled", "drawn", "device_array"}
OF_LABELS = {"similar", "dissimilar", "confidence", "listed", "members", "ends", "classes"}


def exposed_arrays(objective):
    """The arrays of the objective that can be written into, by name."""
    found = {}
    holders = [
        ("objective", objective, EXPOSED),
        ("pairs", objective.pairs, OF_PAIRS | OF_LABELS),
        ("labels", objective.pairs.labels, OF_LABELS),
    ]
    for k, block in enumerate(objective.penalties):
        holders.append((f"penalties[{k}]", block, [n for n in vars(block) if n[0] != "_"]))
    for where, holder, names in holders:
        for name in sorted(names):
            array, again = (getattr(holder, name, None) for _ in range(2))
            if not isinstance(array, np.ndarray) or not np.shares_memory(array, again):
                continue  # none, or a fresh copy each time
            if array.flags.writeable and array.size:
                found[f"{where}.{name}"] = array
    return found


# Inputs that are nearly what they should be


def nearly_right(rng):
    """Matrices with an eigenvalue below zero, or asymmetric, by very little: as given, or refused.

    A matrix that is asymmetric counts as (B + B')/2.
    """
    n, m = int(rng.integers(3, 8)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, m))
    if rng.random() < 0.3:
        X = X * decades(rng, -3, 3, size=m)
    pairs = PairSet.from_labels(X, labels(rng, n))
    settings = {
        "trace_weight": 0.0 if rng.random() < 0.7 else float(decades(rng, -14, -6)),
        "unlabeled_weight": ["ratio", float(decades(rng, -1, 1))][rng.integers(2)],
    }
    B = nearly_psd(rng, m)
    kind = rng.integers(5)
    if kind <= 1:
        settings["manifold_term"] = B
    elif kind == 2:
        settings["previous_metric"] = B
        settings["sharpness"] = float(decades(rng, 0, 3))
    else:
        return with_nearly_right_block(rng, pairs, settings, m)
    found = stated(pairs, **settings)
    name = "manifold_term" if kind <= 1 else "previous_metric"
    return replace(found, falsehoods=changed(name, getattr(found.objective, name), B))


def nearly_psd(rng, m):
    """A matrix that lacks little to a PSD one, in one way or in both."""
    turn = np.linalg.qr(rng.normal(size=(m, m)))[0]
    spectrum = decades(rng, -3, 1, size=m)
    if rng.random() < 0.7:
        spectrum[0] = -decades(rng, -17, -7) * np.max(spectrum)
    B = (turn * spectrum) @ turn.T
    B = (B + B.T) / 2.0
    if rng.random() < 0.4:
        B[0, 1] += decades(rng, -16, -8) * np.sqrt(abs(B[0, 0] * B[1, 1]))
    if rng.random() < 0.3:
        scale = 2.0 ** rng.integers(-20, 21, size=m)
        B = B * scale[:, None] * scale
    return B


def with_nearly_right_block(rng, pairs, settings, m):
    """A prior, a bound or a linear constraint whose matrix is asymmetric by very little."""
    from seraph_cvx.penalties import LinearConstraints, Ridge, UpperBound

    A = rng.normal(size=(m, m))
    A = A @ A.T + 0.1 * np.eye(m)
    A = (A + A.T) / 2.0
    A[0, 1] += decades(rng, -16, -8) * np.sqrt(A[0, 0] * A[1, 1])
    kind = rng.integers(3)
    if kind == 0:
        block, held = Ridge(float(decades(rng, -3, 3)), A), "prior"
    elif kind == 1:
        block, held = UpperBound(A), "bound"
    else:
        block, held = LinearConstraints(A, upper=float(decades(rng, -1, 1))), "matrices"
    given_array = A[None] if held == "matrices" else A
    found = stated(pairs, penalties=[block], **settings)
    return replace(found, falsehoods=changed(held, getattr(block, held), given_array))


def changed(name, held, array):
    """A falsehood if what an object holds is not what it was given, made symmetric."""
    meant = (array + np.swapaxes(array, -1, -2)) / 2.0
    if np.array_equal(held, meant):
        return {}
    off = float(np.max(np.abs(held - meant)) / np.max(np.abs(meant)))
    return {"changed input": f"{name} is not what was given: off by {off:.3g} of its size"}


# Objectives made from others


def made_from_another(rng):
    """An M-step derived from one that was certified before: what they share must be the same.

    Or one that was pickled, or copied.
    """
    n, m = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, m)) * (decades(rng, -3, 3, size=m) if rng.random() < 0.3 else 1.0)
    pairs = PairSet.from_labels(X, labels(rng, n))
    pairs = drawn(rng, pairs) if rng.random() < 0.3 else pairs
    sizes = Sizes(0.0, 0.0)
    settings = own_settings(rng, pairs, sizes)
    objective = MStepObjective(**settings)
    for _ in range(int(rng.integers(1, 4))):
        certify(objective, some_metric(rng, pairs))
        change = own_settings(rng, pairs, sizes)
        names = rng.permutation(list(change))[: int(rng.integers(1, 3))].tolist()
        change = {name: change[name] for name in names}
        if "previous_metric" in change or "soft_labels" in change:
            change = {"soft_labels": None, "previous_metric": None} | change
        if "pairs" in change:
            change |= {"soft_labels": None}
        objective = replace(objective, **change)
        pairs = objective.pairs
    if rng.random() < 0.15:
        objective = pickle.loads(pickle.dumps(objective))
    elif rng.random() < 0.15:
        objective = copy.deepcopy(objective)
    found = Instance(objective)
    return replace(found, optimum=optimum_of_one_feature(objective)) if m == 1 else found


def own_settings(rng, pairs, sizes):
    """Every argument of an objective, each of its own kind."""
    m = pairs.n_features
    term = psd(rng, m)
    settings = {
        "trace_weight": 0.0 if rng.random() < 0.4 else float(decades(rng, -6, 1)),
        "unlabeled_weight": float(decades(rng, -2, 1)),
        "threshold": float(decades(rng, -1, 1)),
        "manifold_term": None if rng.random() < 0.5 else (term + term.T) / 2.0,
        "penalties": [],
        "pairs": pairs,
    }
    if rng.random() < 0.3:
        kind = str(rng.choice(["ridge", "trace bound", "diagonal", "LogDet"]))
        settings["penalties"] = [BLOCKS[kind](rng, m, sizes)]
    if rng.random() < 0.3:
        settings["pairs"] = pairs.whole if rng.random() < 0.5 else drawn(rng, pairs.whole)
    if rng.random() < 0.4:
        settings["previous_metric"] = some_metric(rng, pairs)
        settings["sharpness"] = float(decades(rng, -0.3, 1.0))
    elif rng.random() < 0.4 and settings["pairs"].drawn is None:
        settings["soft_labels"] = rng.random(pairs.n_unlabeled)
    return settings


def proofs(rng):
    """The same bounds by balls, `certify(..., rigorous=True)`, of instances of other families."""
    from stress_families import FAMILIES

    kinds = ["one feature", "huge and tiny weights", "mixed", "ridge", "LogDet", "upper bound"]
    kinds += ["linear bounds", "linear equations", "several blocks", "denormal numbers"]
    found = FAMILIES[str(rng.choice(kinds))](rng)

    def prove(objective, metric):
        try:
            return certify(objective, metric, rigorous=True)
        except ArithmeticError as error:
            if "cannot be enclosed" in str(error) or "can be proven" in str(error):
                raise ValueError(str(error)) from None  # says so, and what to do
            raise

    return replace(found, certify=prove, can_be_solved=False)


# Estimators, paths and files


@contextmanager
def listening_to_alternations():
    """The alternations that estimators run, as they end."""
    runs, module = [], seraph_cvx.estimators.base
    original = module.run_alternation

    def run_alternation(*args, **kwargs):
        runs.append(original(*args, **kwargs))
        return runs[-1]

    module.run_alternation = run_alternation
    try:
        yield runs
    finally:
        module.run_alternation = original


def classes_of_points(rng, scale=1.0):
    n, m = int(rng.integers(10, 22)), int(rng.integers(1, 4))
    truth = np.arange(n) % 2
    X = (rng.normal(size=(2, m))[truth] * 2.0 + rng.normal(size=(n, m))) * scale
    y = np.where(rng.random(n) < 0.5, truth, -1)
    y[:4] = truth[:4]
    return X, y


def estimator_settings(rng, scale):
    """Settings in which the estimators run, none of which takes long."""
    settings = {"max_iter": int(rng.integers(1, 6)), "time_limit": 2.0}
    if rng.random() < 0.5:
        settings["setting"] = str(rng.choice(["none", "post", "proj", "hyper"]))
        settings["allow_unattained"] = True
    if rng.random() < 0.2:
        settings["unlabeled_pairs"] = int(rng.integers(5, 30))
        settings["random_state"] = int(rng.integers(1000))
    if rng.random() < 0.2:
        settings["laplacian_weight"] = float(decades(rng, -3, 1))
    return settings


def estimators(rng):
    """The certificate of a fitted estimator, of the M-step that it ended with; also from a file."""
    scale = 1.0 if rng.random() < 0.6 else float(decades(rng, -6, 6))
    X, y = classes_of_points(rng, scale)
    settings = estimator_settings(rng, scale)
    kind = rng.choice(["SERAPH", "SERAPH", "KernelSERAPH", "PairSERAPH", "SERAPHCV"])
    with warnings.catch_warnings(), listening_to_alternations() as runs:
        warnings.simplefilter("ignore")
        if kind == "SERAPH":
            if rng.random() < 0.3:
                block = BLOCKS[str(rng.choice(["ridge", "trace bound", "diagonal", "sparse"]))]
                settings["penalties"] = [block(rng, X.shape[1], Sizes(0.0, -2 * np.log10(scale)))]
            more = {}
            free = np.flatnonzero(y == -1)
            if len(free) > 3 and rng.random() < 0.3:
                more = {"similar": [free[:2]], "dissimilar": [free[1:3]]}
                more["similar_confidence"] = float(decades(rng, -1, 1))
            model = SERAPH(**settings).fit(X, y, **more)
        elif kind == "KernelSERAPH":
            model = KernelSERAPH(kernel=str(rng.choice(["rbf", "linear", "poly"])), **settings)
            model.fit(X / scale, y)
        elif kind == "PairSERAPH":
            rows = np.column_stack(np.triu_indices(len(X), 1))
            rows = rows[rng.permutation(len(rows))[:12]]
            signs = np.where(rng.random(len(rows)) < 0.5, 1, -1)
            c = decades(rng, -1, 1, size=len(rows)) if rng.random() < 0.5 else None
            model = PairSERAPH(**settings).fit(X[rows], signs, confidence=c)
        else:
            settings = {"max_iter": 2}
            model = SERAPHCV(trace_weights=[0.1, 1.0], cv=2, **settings).fit(X, y)
        certificates = [model.certificate_]
        if rng.random() < 0.5:
            certificates.append(from_file(model).certificate_)
    return instance_of_run(runs[-1], certificates, model)


def from_file(model):
    with TemporaryDirectory() as folder:
        save_model(model, Path(folder) / "model.npz")
        return load_model(Path(folder) / "model.npz")


def instance_of_run(run, certificates, model):
    """What the run ended with: over all pairs, if the estimator drew some."""
    objective = run.objective
    if objective.pairs.drawn is not None and model is not None:
        objective = replace(objective, pairs=objective.pairs.whole)
    return Instance(objective, certificates=certificates, metrics=[run.metric])


def alternations(rng):
    """The last M-step of `alternate`, and the points of `seraph_path`."""
    X, y = classes_of_points(rng, 1.0 if rng.random() < 0.6 else float(decades(rng, -6, 6)))
    pairs = PairSet.from_labels(X, y)
    if rng.random() < 0.3:
        pairs = drawn(rng, pairs)
    spread = float(np.max(np.ptp(X, axis=0)) ** 2)
    mu = ["ratio", float(decades(rng, -2, 0))][rng.integers(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rng.random() < 0.5:
            run = alternate(
                pairs,
                mu,
                trace_weight=spread * float(decades(rng, -3, 0)),
                max_iter=int(rng.integers(1, 5)),
                time_limit=2.0,
            )
            return instance_of_run(run, [run.m_step.certificate], None)
        weights = sorted(spread * decades(rng, -3, 0, size=3), reverse=True)
        path = seraph_path(pairs, weights, unlabeled_weight=mu)
    k = int(rng.integers(3))
    objective = MStepObjective(
        pairs, unlabeled_weight=mu, trace_weight=float(path.points[k].weight)
    )
    return Instance(
        objective, certificates=[path.points[k].certificate], metrics=[path.points[k].metric]
    )


SOLVERS = ["fista", "CLARABEL", "SCS"]


def solvers(rng):
    """What solve_m_step says of its own answer, by each of several solvers."""
    n, m = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, m)) * float(decades(rng, -1, 1))
    found = m_step(rng, PairSet.from_labels(X, labels(rng, n)))
    solver = str(rng.choice(SOLVERS))
    options = {} if solver == "fista" else {"formulation": str(rng.choice(["primal", "dual"]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = solve_m_step(found.objective, solver=solver, allow_unattained=True, **options)
    if answer.certificate is None:
        return found
    return replace(found, certificates=[answer.certificate], metrics=[answer.metric])


DOORS = {
    "made from another objective": made_from_another,
    "proofs by balls": proofs,
    "other arrays": other_arrays,
    "written into later": mutated,
    "nearly right inputs": nearly_right,
    "estimators and files": estimators,
    "alternations and paths": alternations,
    "solvers": solvers,
}

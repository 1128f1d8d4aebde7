"""Families of ways in: other arrays, inputs that are written into later or nearly right, files."""

from __future__ import annotations

import copy
import pickle
import warnings
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import array_api_strict
import numpy as np
from judge import Judge
from strategies import EXACT_CONTAINERS, narrowed
from stress_families import (
    BLOCKS,
    PENALIZED,
    PLAIN,
    Instance,
    all_dissimilar,
    all_pairs,
    blocks,
    chance,
    classes,
    decades,
    draw,
    draw_points,
    draw_settings,
    integer,
    manifold_term,
    one_of,
    random_labels,
    random_symmetric,
    scaled,
    shifted,
    some_metric,
    some_of,
    stated,
    streamed_labels,
    symmetric_part,
    uneven,
    value,
    zero_or,
)

import seraph_cvx.estimators.base
from seraph_cvx import (
    SERAPH,
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
from seraph_cvx.penalties import LogDet, Ridge

SMALL = [((3, 8), (1, 4))]


# Arrays of other libraries and other shapes in memory


def memory_map(X):
    """An array on disk; the folder is gone at once, which POSIX allows."""
    with TemporaryDirectory() as folder:
        mapped = np.memmap(Path(folder) / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    return mapped


FOREIGN = [array_api_strict.asarray]
CONTAINERS = [*EXACT_CONTAINERS.values(), memory_map, narrowed]
try:
    import torch
except ImportError:
    pass
else:
    FOREIGN.append(torch.asarray)
try:
    import dask.array
except ImportError:
    pass
else:
    CONTAINERS.append(partial(dask.array.from_array, chunks=(3, 2)))


def other_arrays(rng):
    """Points in a container of any library: judged by the same numbers given plainly."""
    changes = [(0.3, uneven, -6, 6), (0.3, shifted, 0, 8), (0.1, scaled, -20, 20)]
    X = draw_points(rng, [((3, 14), (1, 4))], changes).astype(np.float32).astype(np.float64)
    contain = one_of(rng, FOREIGN if chance(rng, 0.5) else CONTAINERS)
    if contain in FOREIGN and chance(rng, 0.5):
        X = X + decades(rng, -9, -7) * X  # no floats of 32 bits any more
        contained = contain(X.copy())
    else:
        contained = contain(X.astype(np.float32) if contain in FOREIGN else X.copy())
    plain = classes(rng, X)
    pairs = PairSet.from_constraints(contained, plain.similar, plain.dissimilar)
    settings = draw_settings(
        rng,
        plain,
        trace_weight=zero_or(3, -6, 1),
        unlabeled_weight=["ratio", (-3, 2)],
        labels=[all_dissimilar, partial(streamed_labels, low=-2, high=2)],
        penalties=partial(blocks, kinds=["ridge"], least=0),
    )
    judge = Judge(plain, **settings)
    return Instance(MStepObjective(pairs, **settings), judge)


# Arrays that are written into after they were given


def mutated(rng):
    """Everything given is written into, at once or after the first certificate."""
    X = draw_points(rng, SMALL)
    n, m = X.shape
    points = one_of(rng, FOREIGN)(X.copy()) if chance(rng, 0.3) else X
    rows = some_of(rng, all_pairs(n), 2)
    own = [points, rows, decades(rng, -1, 1, size=len(rows) - 1), np.array([decades(rng, -1, 1)])]
    y = np.arange(n) % 3 - 1
    pairs = PairSet.from_constraints(points, rows[:1], rows[1:], None, own[2])
    if chance(rng, 0.5):
        pairs, own = PairSet.from_labels(points, y), [*own, y]
    labels = [all_dissimilar, streamed_labels, random_labels]
    terms = {"manifold_term": [None, manifold_term], "labels": labels, "unlabeled_weight": 0.5}
    settings = draw_settings(rng, pairs, trace_weight=(-3, 0), **terms)
    A = np.diag(decades(rng, -1, 1, size=m))
    kinds = [Ridge(0.3, A), LogDet(0.3, A)]
    chosen = [kinds[k] for k in rng.permutation(len(kinds))[: integer(rng, 0, 2)]]
    own += [A, *(x for x in settings.values() if isinstance(x, np.ndarray))]
    found = stated(pairs, penalties=chosen, **settings)

    def disturb():
        for array in own:
            if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
                array[...] = rng.permutation(array.ravel()).reshape(array.shape)
            else:
                array[...] = array * 0.25
        for block in chosen:
            block.weight = 7.0 * block.weight

    if chance(rng, 0.5):
        disturb()
        return found
    return replace(found, disturb=disturb)


# Inputs that are nearly what they should be


def nearly_right(rng):
    """Matrices with an eigenvalue below zero, or asymmetric, by very little: as given, or refused.

    A matrix that is asymmetric counts as (B + B')/2.
    """
    pairs = classes(rng, draw_points(rng, [((3, 8), (2, 5))], [(0.3, uneven, -3, 3)]))
    m = pairs.n_features
    name = one_of(rng, ["manifold_term", "manifold_term", "previous_metric", "block", "block"])
    spectrum = decades(rng, -3, 1, size=m)
    if name != "block" and chance(rng, 0.7):
        spectrum[0] = -decades(rng, -17, -7) * np.max(spectrum)
    B = random_symmetric(rng, spectrum)
    if name == "block" or chance(rng, 0.4):
        B[0, 1] += decades(rng, -16, -8) * np.sqrt(abs(B[0, 0] * B[1, 1]))
    if chance(rng, 0.3):
        scale = 2.0 ** rng.integers(-20, 21, size=m)
        B = B * scale[:, None] * scale
    more = {"sharpness": decades(rng, 0, 3)} if name == "previous_metric" else {}
    more |= {name: B}
    holder, attribute = None, name
    if name == "block":
        holder, attribute = Ridge(decades(rng, -3, 3), B), "prior"
        more = {"penalties": [holder]}
    weights = {"trace_weight": zero_or(7, -14, -6), "labels": all_dissimilar}
    found = stated(pairs, **draw_settings(rng, pairs, **weights) | more)
    held = getattr(holder or found.objective, attribute)
    if np.array_equal(held, symmetric_part(B)):
        return found
    off = float(np.max(np.abs(held - symmetric_part(B))) / np.max(np.abs(B)))
    words = f"{attribute} is not what was given: off by {off:.3g} of its size"
    return replace(found, falsehoods={"changed input": words})


# Objectives made from others


def own_settings(rng, pairs):
    """Every argument of an objective, each of its own kind."""
    labels = [all_dissimilar, streamed_labels, random_labels]
    options = {
        "trace_weight": zero_or(4, -6, 1),
        "unlabeled_weight": (-2, 1),
        "threshold": (-1, 1),
        "manifold_term": [None, manifold_term],
        "penalties": partial(
            blocks, kinds=["ridge", "trace bound", "diagonal metric", "LogDet"], least=0, most=1
        ),
    }
    none = {"soft_labels": None, "previous_metric": None, "pairs": pairs}
    return none | draw_settings(rng, pairs, labels=labels, **options)


def made_from_another(rng):
    """An M-step derived from one that was certified before: what they share must be the same.

    Or one that was pickled, or copied.
    """
    pairs = classes(rng, draw_points(rng, SMALL, [(0.3, uneven, -3, 3)]))
    objective = MStepObjective(**own_settings(rng, pairs))
    for _ in range(integer(rng, 1, 4)):
        certify(objective, some_metric(rng, pairs))
        change = own_settings(rng, objective.pairs)
        names = some_of(rng, np.array(list(change)), 1, 2).tolist()
        if {"pairs", "soft_labels", "previous_metric"} & set(names):
            names += ["pairs", "soft_labels", "previous_metric"]
        objective = replace(objective, **{name: change[name] for name in names})
    objective = one_of(rng, [*4 * [copy.copy], copy.deepcopy, through_pickle])(objective)
    return Instance(objective)


def through_pickle(objective):
    return pickle.loads(pickle.dumps(objective))


# Estimators, paths and files


@contextmanager
def quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def quiet_alternations():
    """The alternations that estimators run, as they end; without their warnings."""
    runs, module = [], seraph_cvx.estimators.base
    original = module.run_alternation

    def run_alternation(*args, **kwargs):
        runs.append(original(*args, **kwargs))
        return runs[-1]

    module.run_alternation = run_alternation
    try:
        with quietly():
            yield runs
    finally:
        module.run_alternation = original


def classes_of_points(rng):
    """Points, labels, and the size of the points."""
    n, m = integer(rng, 10, 22), integer(rng, 1, 4)
    scale, truth = value(rng, [1.0, (-6, 6)]), np.arange(n) % 2
    X = (rng.normal(size=(2, m))[truth] * 2.0 + rng.normal(size=(n, m))) * scale
    return X, np.where((np.arange(n) < 4) | (rng.random(n) < 0.5), truth, -1), scale


def estimators(rng):
    """The certificate of a fitted estimator, of the M-step that it ended with; also from a file."""
    X, y, scale = classes_of_points(rng)
    settings = {"max_iter": integer(rng, 1, 6), "time_limit": 2.0}
    for share, more in [
        (0.5, {"setting": one_of(rng, ["none", "post", "proj", "hyper"])}),
        (0.2, {"laplacian_weight": decades(rng, -3, 1)}),
    ]:
        settings |= more if chance(rng, share) else {}
    settings["allow_unattained"] = "setting" in settings
    kind = one_of(rng, [SERAPH, SERAPH, KernelSERAPH, PairSERAPH])
    more, arguments = {}, (X, y)
    if kind is SERAPH:
        block = one_of(rng, ["ridge", "trace bound", "diagonal metric", "sparse metric"])
        if chance(rng, 0.3):
            settings["penalties"] = [BLOCKS[block](rng, X.shape[1], -2 * np.log10(scale))]
        free = np.flatnonzero(y == -1)
        if len(free) > 3 and chance(rng, 0.3):
            more = {"similar": [free[:2]], "dissimilar": [free[1:3]]}
            more["similar_confidence"] = decades(rng, -1, 1)
    elif kind is KernelSERAPH:
        settings["kernel"] = one_of(rng, ["rbf", "linear", "poly"])
        arguments = X / scale, y
    else:
        rows = some_of(rng, all_pairs(len(X)), 12, 12)
        arguments = X[rows], np.where(rng.random(len(rows)) < 0.5, 1, -1)
        more["confidence"] = decades(rng, -1, 1, size=len(rows)) if chance(rng, 0.5) else None
    with quiet_alternations() as runs:
        model = kind(**settings).fit(*arguments, **more)
        certificates = [model.certificate_]
        if chance(rng, 0.5):
            with TemporaryDirectory() as folder:
                save_model(model, Path(folder) / "model.npz")
                certificates.append(load_model(Path(folder) / "model.npz").certificate_)
    run = runs[-1]
    return Instance(run.objective, certificates=certificates, metrics=[run.metric])


def alternations(rng):
    """The last M-step of `alternate`, and the points of `seraph_path`."""
    X, y, _ = classes_of_points(rng)
    pairs = PairSet.from_labels(X, y)
    mu = value(rng, ["ratio", (-2, 0)])
    weights = sorted(np.max(np.ptp(X, axis=0)) ** 2 * decades(rng, -3, 0, size=3), reverse=True)
    with quietly():
        if chance(rng, 0.5):
            limits = {"max_iter": integer(rng, 1, 5), "time_limit": 2.0}
            run = alternate(pairs, mu, trace_weight=weights[0], **limits)
            objective, answer, certificate = run.objective, run, run.m_step.certificate
        else:
            answer = one_of(rng, seraph_path(pairs, weights, unlabeled_weight=mu).points)
            weight, certificate = float(answer.trace_weight), answer.certificate
            objective = MStepObjective(pairs, unlabeled_weight=mu, trace_weight=weight)
    return Instance(objective, certificates=[certificate], metrics=[answer.metric])


def solvers(rng):
    """What solve_m_step says of its own answer, by each of several solvers."""
    found = draw(rng, shapes=SMALL, changes=[(1.0, scaled, -1, 1)], pairs=classes)
    solver = one_of(rng, ["newton", "CLARABEL", "SCS"])
    options = {} if solver == "newton" else {"formulation": one_of(rng, ["primal", "dual"])}
    with quietly():
        answer = solve_m_step(found.objective, solver=solver, allow_unattained=True, **options)
    if answer.certificate is None:
        return found
    return replace(found, certificates=[answer.certificate], metrics=[answer.metric])


INPUTS = {
    "made from another objective": made_from_another,
    "other arrays": other_arrays,
    "written into later": mutated,
    "nearly right inputs": nearly_right,
    "estimators and files": estimators,
    "alternations and paths": alternations,
    "solvers": solvers,
}

FAMILIES = {
    name: partial(draw, **options) for name, options in (PLAIN | PENALIZED).items()
} | INPUTS

MARATHON = (
    dict.fromkeys(PLAIN, 800)
    | dict.fromkeys(list(PLAIN)[17:], 600)  # at the ends of the range, where each costs more
    | dict.fromkeys(PENALIZED, 300)
    | {"one feature and blocks": 500}
    | dict.fromkeys(INPUTS, 150)
    | dict.fromkeys(["nearly right inputs", "other arrays", "made from another objective"], 300)
)
"""How many instances of each family the marathon has: 19,800 in all."""

"""Evidence: every model comes back bit for bit; a damaged or a stranger's file is refused by name,
and nothing in it runs."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
import zipfile
from functools import reduce
from operator import getitem

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from seraph_cvx import (
    SERAPH,
    KernelSERAPH,
    LabeledOnly,
    PairSERAPH,
    PairSet,
    certify,
    load_model,
    save_model,
)
from seraph_cvx.datasets import load_sampling
from seraph_cvx.estimators.plain_file import pack, unpack
from seraph_cvx.pairs.labeled_pairs import LabeledPairs

SAMPLING = load_sampling("iris", n_points=40, n_labeled=16, seed=1)
X, Y = SAMPLING.X, SAMPLING.y
FRAME = pd.DataFrame(X, columns=["p", "q", "r", "größe"])
SAME = np.where(Y[[0, 2, 4, 6, 1, 3]] == Y[[1, 3, 5, 7, 8, 9]], 1, -1)
MODELS = {
    "SERAPH": SERAPH(sharpness=2.0),
    "SERAPH, direct": SERAPH(algorithm="direct", tol=1e-3),
    "SERAPH, cut": SERAPH(n_components=2, trace_weight=np.float64(0.3)),
    "SERAPH, frame": SERAPH(),
    "PairSERAPH": PairSERAPH(),
    "KernelSERAPH": KernelSERAPH(gamma=0.3),
}
DATA = {
    "SERAPH, frame": (FRAME, Y),
    "PairSERAPH": (X[[[0, 1], [2, 3], [4, 5], [6, 7], [1, 8], [3, 9]]], SAME),
}
"""Where it is not X, Y."""


@pytest.fixture(scope="module")
def fitted():
    """Every kind of model, fitted, by name, and a pipeline."""
    models = {**MODELS, "Pipeline": make_pipeline(StandardScaler(), SERAPH())}
    return {kind: model.fit(*DATA.get(kind, (X, Y))) for kind, model in models.items()}


def through_a_file(model, folder):
    save_model(model, folder / "model.npz")
    return load_model(folder / "model.npz")


def content(model):
    """What an object holds, in plain containers: arrays by their bits."""
    if isinstance(model, np.ndarray) and model.dtype != object:
        return model.dtype, model.shape, model.tobytes()
    if isinstance(model, np.ndarray | list | tuple):
        return type(model), [content(item) for item in model]
    if isinstance(model, SERAPH | dict):
        items = model if isinstance(model, dict) else vars(model)
        return {name: content(value) for name, value in items.items()}
    return repr(model.item() if isinstance(model, np.generic) else model)


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back_bit_for_bit(fitted, tmp_path, kind):
    model = fitted[kind]
    again = through_a_file(model, tmp_path)
    assert type(again) is type(model)
    assert content(vars(again)) == content(vars(model))
    points = SAMPLING.X_test
    if hasattr(model, "feature_names_in_"):
        points = pd.DataFrame(points, columns=model.feature_names_in_)
    transformed = again.transform(points)
    assert type(transformed) is type(model.transform(points))
    assert np.array_equal(transformed, model.transform(points))


SCALERS = [
    StandardScaler(with_mean=False),
    MinMaxScaler((-1.0, 1.0)),
    MaxAbsScaler(),
    RobustScaler(),
    SimpleImputer(strategy="median"),
    SimpleImputer(strategy="constant", fill_value=0.5),
]


@pytest.mark.filterwarnings("ignore::seraph_cvx.pairs.data_warnings.ScaleWarning")
@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_a_pipeline_comes_back_bit_for_bit(tmp_path, scaler):
    frame = FRAME * [1.0, 20.0, 3.0, 0.1] + 5.0
    names = np.array(["a", "b", "c"], dtype=object)[Y]
    y = np.where(Y == -1, None, names)
    pipeline = make_pipeline(scaler, SERAPH()).fit(frame, y)
    again = through_a_file(pipeline, tmp_path)
    assert [name for name, _ in again.steps] == [name for name, _ in pipeline.steps]
    if isinstance(scaler, SimpleImputer):
        frame.iloc[3, 2] = np.nan
    assert np.array_equal(again.transform(frame), pipeline.transform(frame))
    assert str(again[0]) == str(scaler)
    assert again[-1].labels_.tolist() == [label for label in y if label is not None]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["q", "p", "r", "größe"]])


# Refused on saving


class MyOwnSERAPH(SERAPH):
    pass


def with_remark(**remark):
    model = SERAPH()
    model.__dict__.update(remark)
    return model


NOT_WRITTEN = {
    r"`extra_` is <object .* give such a value": with_remark(extra_=object()),
    "`remark` is nothing it learns": with_remark(remark="a good one"),
    r"`parameters\.kernel` is <function": KernelSERAPH(lambda a, b: float(a @ b), tol=1e-3),
    "MyOwnSERAPH cannot be saved: only SERAPH, PairSERAPH": MyOwnSERAPH(),
    r"not SERAPH\. .* save pipeline\[:-1\]": make_pipeline(
        StandardScaler(), SERAPH(), LabeledOnly()
    ),
    r"This Pipeline cannot be saved: .* not PCA": make_pipeline(PCA(2), LabeledOnly()),
    r"not ColumnTransformer. Transform .* by 'columntransformer'": make_pipeline(
        ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough"), SERAPH()
    ),
    r"`steps\.0\.parameters\.strategy` is <function": make_pipeline(
        SimpleImputer(strategy=np.max), SERAPH()
    ),
}


@pytest.mark.parametrize("message", NOT_WRITTEN)
def test_failure_path_models_that_are_not_written(tmp_path, message):
    model = NOT_WRITTEN[message].fit(X[:20], Y[:20])
    with pytest.raises(TypeError, match=message):
        save_model(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
    if "save pipeline" in message:  # the cures work
        through_a_file(model[:-1], tmp_path)


# Refused on loading


@pytest.fixture
def path(fitted, tmp_path):
    save_model(fitted["SERAPH"], tmp_path / "model.npz")
    return tmp_path / "model.npz"


def read(path):
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(path, header, arrays, save=np.savez):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    save(path, header=np.frombuffer(text, dtype=np.uint8), **arrays)


def refusal(path):
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_the_file_is_plain_numpy_and_json(fitted, path):
    header, arrays = read(path)
    assert np.array_equal(arrays["metric_"], fitted["SERAPH"].metric_)
    expected = {"format": "seraph_cvx model", "format_version": 3, "class": "SERAPH"}
    assert header.items() >= expected.items()
    assert header["parameters"]["sharpness"] == 2.0


def test_what_is_not_as_by_default_is_kept_in_a_result(tmp_path):
    model = SERAPH(classifier="auto").fit(X, Y)
    model.table_ = {"texts": {"color": ["blue", "red"]}, "missing": ["9999"]}
    again = through_a_file(model, tmp_path)
    assert again.held_out_ == model.held_out_
    assert again.held_out_.n == 16
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.table_ == model.table_
    model.table_ = ["no dict"]
    save_model(model, tmp_path / "model.npz")
    with pytest.raises(ValueError, match="the table_ of this SERAPH is"):
        load_model(tmp_path / "model.npz")


GONE = object()
DAMAGES = {
    "SERAPH": {
        "is not positive semidefinite": {"metric_": -np.eye(4)},
        "NaN": {"metric_": np.full((4, 4), np.nan)},
        "metric_": ("attributes.metric_", GONE),
        "does not say 'seraph_cvx model'": ("format", "another"),
        "format version is 1, written by": ("format_version", 1),
        "class 'Popen' is none of SERAPH": ("class", "Popen"),
        "'shell'": ("parameters.shell", True),
        "{'eval': '1 + 1'}, which is no value": ("parameters.solver", {"eval": "1 + 1"}),
        "learns no attribute '__class__'": ("attributes.__class__", "x"),
        "learns no attribute 'transform'": ("attributes.transform", "x"),
        "the components_ of this SERAPH holds NaN": {"components_": np.full((4, 4), np.nan)},
        "the n_iter_ of this SERAPH is 'many'": ("attributes.n_iter_", "many"),
        "the threshold_ of this SERAPH is missing": ("attributes.threshold_", GONE),
        "Certificate": ("attributes.certificate_", {"certificate": {"gap": 1.0}}),
    },
    "Pipeline": {
        "its class 'Popen' is none of StandardScaler": ("steps.0.1.class", "Popen"),
        "none of SERAPH": ("steps.1.1.class", "StandardScaler"),
    },
    "KernelSERAPH": {
        "_mean of this KernelSERAPH is missing": ("attributes._mean", GONE),
    },
}
"""What is said of a file where arrays, or a value of the header, are replaced or gone."""


@pytest.mark.parametrize(
    ("kind", "message"), [(kind, message) for kind in DAMAGES for message in DAMAGES[kind]]
)
def test_failure_path_a_file_that_does_not_fit_together(fitted, path, kind, message):
    save_model(fitted[kind], path)
    header, arrays = read(path)
    write(path, header, arrays)
    load_model(path)  # undamaged, it is read
    damage = DAMAGES[kind][message]
    if isinstance(damage, dict):
        arrays |= damage
    else:
        *outer, last = (int(key) if key.isdigit() else key for key in damage[0].split("."))
        inner = reduce(getitem, outer, header)
        inner[last] = damage[1]
        if damage[1] is GONE:
            del inner[last]
    write(path, header, {name: a for name, a in arrays.items() if a is not None})
    assert message in refusal(path)


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_failure_path_a_pickle_is_not_opened(path, tmp_path):
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    header, arrays = read(path)
    write(path, header, {**arrays, "metric_": trap})
    refusal(path)
    for content in (saved(trap), trap.dumps()):
        path.write_bytes(content)
        refusal(path)
    assert not (tmp_path / "sprung").exists()
    np.load(io.BytesIO(saved(trap)), allow_pickle=True)
    assert (tmp_path / "sprung").exists()  # the trap works, where somebody opens it


def test_failure_path_files_that_are_something_else(path):
    header, arrays = read(path)
    write(path, header, arrays, save=np.savez_compressed)
    assert "compressed" in refusal(path)
    write(path, header, {**arrays, "metric_": np.array(["a", "b"])})
    assert "only plain numbers" in refusal(path)
    for text, message in [
        (b"{", ""),
        (b"\xff", ""),
        (b"[1, 2]", "no JSON object"),
        (b"[" * 100_000, ""),
    ]:
        write(path, text, arrays)
        assert message in refusal(path)
    np.savez(path, metric=np.eye(2), feature_names=np.array(["a", "b"]))
    assert "it has no header" in refusal(path)
    for content in (b"", b"1.0 0.0\n0.0 1.0\n"):
        path.write_bytes(content)
        refusal(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        load_model(path)


@pytest.mark.parametrize("claim", [b"(4, 4000000000000), }", b"(0, %s), }" % (b"3" * 31)])
def test_failure_path_an_array_that_claims_more_than_it_has(path, claim):
    data = saved(np.empty((4, 4))).replace(b"(4, 4), }".ljust(len(claim)), claim)
    assert claim in data
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", data)
    refusal(path)


def test_failure_path_entries_that_share_their_bytes_are_refused_before_they_are_read(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", saved(np.zeros(500_000, dtype=np.uint8)))
        archive.filelist *= 100  # unfolded, it would be a hundred times as long
    tracemalloc.start()
    try:
        message = refusal(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "more than the" in message
    assert peak < 4 * path.stat().st_size


@pytest.mark.parametrize("offset", [10**9, 9])
def test_failure_path_an_entry_that_is_not_where_it_says(path, offset):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", saved(np.arange(3, dtype=np.uint8)))
        archive.filelist[0].header_offset += offset
    refusal(path)


@pytest.mark.parametrize(
    "rows", [[[0, 3]], [[-1, 0]], [[1, 0]], [[0, 0]], [[0, 1, 2]], [[0.0, 1.0]], [0, 1]]
)
def test_pairs_of_a_file_are_of_its_points(rows):
    points, rows = np.eye(3), np.array(rows)
    none = np.empty((0, 2), dtype=np.int64)
    packed = pack(PairSet(points, LabeledPairs(rows, none)), "pairs", arrays := {})
    with pytest.raises((ValueError, IndexError)):
        unpack(packed, arrays)


def test_a_loaded_model_has_the_m_step_of_its_certificate(tmp_path):
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = SERAPH().fit(X, [0, 0, 0, 1, 1, 1] + 6 * [-1])
    save_model(model, tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    again = certify(loaded.m_step_objective_, loaded.m_step_metric_)
    assert again == certify(model.m_step_objective_, model.m_step_metric_)
    assert loaded.certificate_.to_json() == model.certificate_.to_json()

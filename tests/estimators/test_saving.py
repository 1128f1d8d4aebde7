"""Evidence: every model comes back bit for bit; a damaged or a stranger's file is refused by name,
and nothing in it runs."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import tracemalloc
import warnings
import zipfile
import zlib
from functools import reduce
from operator import getitem

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from seraph_cvx import (
    SERAPH,
    SERAPHCV,
    KernelSERAPH,
    LabeledKFold,
    LabeledOnly,
    NotCertified,
    PairSERAPH,
    baselines,
    load_model,
    save_model,
)
from seraph_cvx.certificate.sampling import SamplingReport
from seraph_cvx.datasets import load_sampling

SAMPLING = load_sampling("iris", n_points=40, n_labeled=16, seed=1)
X, Y = SAMPLING.X, SAMPLING.y


FRAME = pd.DataFrame(X, columns=["p", "q", "r", "größe"])
SAME = np.where(Y[[0, 2, 4, 6, 1, 3]] == Y[[1, 3, 5, 7, 8, 9]], 1, -1)
MODELS = {
    "SERAPH": SERAPH(sharpness=2.0),
    "SERAPH, direct": SERAPH(algorithm="direct", tol=1e-3),
    "SERAPH, cut": SERAPH(n_components=2, trace_weight=np.float64(0.3)),
    "SERAPH, single": SERAPH(),
    "SERAPH, frame": SERAPH().set_output(transform="pandas"),
    "SERAPH, sample": SERAPH(unlabeled_pairs=99, random_state=0, max_iter=2),
    "PairSERAPH": PairSERAPH(),
    "KernelSERAPH": KernelSERAPH(gamma=0.3),
    "KernelSERAPH, cut": KernelSERAPH("poly", degree=2, n_components=3),
    "SERAPHCV": SERAPHCV(np.array([1.0, 9.0]), cv=2, scoring="pair_auc"),
    **{name: getattr(baselines, name)() for name in baselines.__all__},
}
DATA = {
    "SERAPH, single": (X.astype(np.float32), Y),
    "SERAPH, frame": (FRAME, Y),
    "PairSERAPH": (X[[[0, 1], [2, 3], [4, 5], [6, 7], [1, 8], [3, 9]]], SAME),
}
"""Where it is not X, Y."""


@pytest.fixture(scope="module")
def fitted():
    """Every kind of model, fitted, by name, and a pipeline."""
    models = {**MODELS, "Pipeline": make_pipeline(StandardScaler(), SERAPH())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)  # of the sample
        return {kind: model.fit(*DATA.get(kind, (X, Y))) for kind, model in models.items()}


def through_a_file(model, folder):
    save_model(model, folder / "model.npz")
    return load_model(folder / "model.npz")


def equal(ours, theirs):
    """The same value and the same type, however deep."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, np.ndarray):
        if ours.dtype == object:
            return equal(ours.tolist(), theirs.tolist())
        return ours.dtype == theirs.dtype and np.array_equal(
            ours, theirs, equal_nan=ours.dtype.kind == "f"
        )
    if isinstance(ours, list | tuple):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(equal(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, SERAPH | SamplingReport):
        return equal(vars(ours), vars(theirs))
    return ours == theirs


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_comes_back_bit_for_bit(fitted, tmp_path, kind):
    model = fitted[kind]
    again = through_a_file(model, tmp_path)
    assert type(again) is type(model)
    assert vars(again).keys() == vars(model).keys()
    for name, value in vars(model).items():
        plain = value.item() if isinstance(value, np.generic) else value
        assert equal(plain, vars(again)[name]), name
    points = SAMPLING.X_test
    if hasattr(model, "feature_names_in_"):
        points = pd.DataFrame(points, columns=model.feature_names_in_)
    transformed = again.transform(points)
    assert type(transformed) is type(model.transform(points))
    assert np.array_equal(transformed, model.transform(points))


def test_not_a_number_in_the_scores_of_a_search_is_kept(fitted, tmp_path):
    search = SERAPHCV()
    search.__dict__.update(vars(fitted["SERAPHCV"]))
    search.cv_results_ = {**search.cv_results_, "mean_test_score": np.array([np.nan, 1.0] * 2)}
    again = through_a_file(search, tmp_path)
    assert np.isnan(again.cv_results_["mean_test_score"]).tolist() == [True, False] * 2


def test_the_file_is_plain_numpy_and_json(fitted, tmp_path):
    save_model(fitted["SERAPH"], tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert np.array_equal(file["metric_"], fitted["SERAPH"].metric_)
        header = json.loads(file["header"].tobytes())
    assert header["format"] == "seraph_cvx model"
    assert header["format_version"] == 1
    assert header["class"] == "SERAPH"
    assert header["parameters"]["sharpness"] == 2.0


def test_a_model_has_the_labeled_points_with_their_labels(fitted):
    known = Y != -1
    for model in (fitted["SERAPH"], fitted["SERAPHCV"].best_estimator_):
        np.testing.assert_array_equal(model.labeled_points_, X[known])
        np.testing.assert_array_equal(model.labels_, Y[known])
    assert SERAPH().fit(X, None, [(0, 1)], [(2, 3)]).labels_ is None


# Pipelines of a scaler and a metric

SCALERS = [
    StandardScaler(with_mean=False),
    MinMaxScaler((-1.0, 1.0)),
    MaxAbsScaler(),
    RobustScaler(),
    SimpleImputer(strategy="median"),
    SimpleImputer(strategy="constant", fill_value=0.5),
]


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
    assert again[0].feature_names_in_.tolist() == ["p", "q", "r", "größe"]
    assert again[0].get_params().keys() == scaler.get_params().keys()
    assert again[-1].labels_.tolist() == [label for label in y if label is not None]
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame[["q", "p", "r", "größe"]])


def test_failure_path_a_file_of_the_command_before_it_wrote_models(tmp_path):
    path = tmp_path / "old.npz"
    np.savez(path, metric=np.eye(2), components=np.eye(2), feature_names=np.array(["a", "b"]))
    assert "of an earlier `seraph-cvx fit`" in refusal(path)


# Refused on saving


class MyOwnSERAPH(SERAPH):
    pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": object()}, r"`parameters.solver` is <object .* give such a value"),
        ({"random_state": np.random.RandomState(0)}, r"`parameters.random_state` is RandomState"),
        ({"remark": "a good one"}, "`remark` is nothing it learns"),
        ({"extra_": {1, 2}}, r"`extra_` is \{1, 2\}"),
    ],
)
def test_failure_path_what_is_not_plain_is_not_written(tmp_path, change, message):
    model = SERAPH().fit(X, Y)
    model.__dict__.update(change)
    with pytest.raises(TypeError, match=f"This SERAPH cannot be saved: {message}"):
        save_model(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


NOT_WRITTEN = {
    r"`parameters\.kernel` is <function": KernelSERAPH(lambda a, b: float(a @ b), tol=1e-3),
    r"`parameters\.cv` is LabeledKFold.*best_est": SERAPHCV([1.0], (0.0,), cv=LabeledKFold(2)),
    "MyOwnSERAPH cannot be saved: only SERAPH, PairSERAPH": MyOwnSERAPH(),
    "StandardScaler cannot be saved": StandardScaler(),
    r"not SERAPH\. .* save pipeline\[:-1\]": make_pipeline(
        StandardScaler(), SERAPH(), LabeledOnly()
    ),
    r"This Pipeline cannot be saved: .* not PCA": make_pipeline(PCA(2), SERAPH()),
    "StandardScaler cannot be saved: only SERAPH": make_pipeline(StandardScaler()),
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
    if "best_est" in message:
        assert through_a_file(model.best_estimator_, tmp_path).trace_weight == 1.0


def test_failure_path_nothing_to_write_or_nowhere_to_write_it(fitted, tmp_path):
    with pytest.raises(NotFittedError):
        save_model(SERAPH(), tmp_path / "own.npz")
    with pytest.raises(FileNotFoundError):
        save_model(fitted["SERAPH"], tmp_path / "no such folder" / "model.npz")


def test_failure_path_a_write_that_fails_leaves_the_old_file(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    save_model(fitted["SERAPH"], path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        save_model(fitted["SERAPH, cut"], path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    save_model(fitted["SERAPH, cut"], path)
    assert load_model(path).n_components == 2
    assert list(tmp_path.iterdir()) == [path]


# Refused on loading


def read(path):
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(path, header, arrays, save=np.savez):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    save(path, header=np.frombuffer(text, dtype=np.uint8), **arrays)


GONE = object()
NAN = np.full((4, 4), np.nan)
DAMAGES = {
    "SERAPH": {
        "'components_' holds NaN or infinity": {"components_": NAN},
        "'metric_' holds NaN": {"metric_": NAN},
        "the metric_ of this SERAPH has shape (4, 3)": {"metric_": np.ones((4, 3))},
        "the components_ of this SERAPH has shape": {"components_": np.ones((4, 3))},
        "is not positive semidefinite": {"metric_": -np.eye(4)},
        "is not symmetric": {"metric_": np.triu(np.ones((4, 4)))},
        "not an array of its kind": {"components_": np.ones((4, 4), dtype=int)},
        "'metric_' is missing": {"metric_": None},
        "does not name its entries ['more']": {"more": np.ones(3)},
        "the labeled_points_ of this SERAPH has shape": {"labels_": np.zeros(3, int)},
        "the metric_ of this SERAPH is missing": ("attributes.metric_", GONE),
        "does not say 'seraph_cvx model'": ("format", "another"),
        "format version is 'one'": ("format_version", "one"),
        "format version is 0": ("format_version", 0),
        "newer than 2": ("format_version", 3),
        "class 'Popen' is none of SERAPH": ("class", "Popen"),
        "class ['SERAPH'] is none of": ("class", ["SERAPH"]),
        "no parameters or no attributes": ("parameters", [1]),
        "its output is 'html'": ("output", "html"),
        "SERAPH has no parameter 'shell'": ("parameters.shell", True),
        "{'eval': '1 + 1'}": ("parameters.solver", {"eval": "1 + 1"}),
        "which is no value of a model": ("parameters.solver", {"a": 1, "b": 2}),
        "learns no attribute '__class__'": ("attributes.__class__", "x"),
        "learns no attribute 'transform'": ("attributes.transform", "x"),
        "learns no attribute 'Metric_'": ("attributes.Metric_", "x"),
        "the labels_ of this SERAPH are not": ("attributes.labels_", "ab"),
        "the n_iter_ of this SERAPH is 'many'": ("attributes.n_iter_", "many"),
        "the status_ of this SERAPH is 'fine'": ("attributes.status_", "fine"),
        "{'status': 'fine'}": ("attributes.status_", {"status": "fine"}),
        "the threshold_ of this SERAPH is nan": ("attributes.threshold_", {"float": "nan"}),
        "the threshold_ of this SERAPH is 'missing'": ("attributes.threshold_", GONE),
        "which is no Certificate": ("attributes.certificate_", {"certificate": {"gap": 1.0}}),
        "which is no Iteration": ("attributes.history_.0.iteration.rank", "two"),
        "the n_features_in_ of this SERAPH is None": ("attributes.n_features_in_", None),
        "has shape (4, 4), where (9, 9) fits": ("attributes.n_features_in_", 9),
    },
    "Pipeline": {
        "its pipeline has no steps": ("steps", []),
        "the step 0 of its pipeline has no name": ("steps.0", ["scale"]),
        "its class 'Popen' is none of StandardScaler": ("steps.0.1.class", "Popen"),
        "no parameter 'shell'": ("steps.0.1.parameters.shell", True),
        "no attribute '__class__'": ("steps.0.1.attributes.__class__", "x"),
        "scale_ of this StandardScaler is not": ("steps.0.1.attributes.scale_", 1.0),
        "none of SERAPH": ("steps.1.1.class", "StandardScaler"),
    },
    "KernelSERAPH": {
        "axes_": ("attributes.axes_", GONE),
        "_row_means": ("attributes._row_means", GONE),
        "_mean": ("attributes._mean", GONE),
    },
    "GDM": {"components_": ("attributes.components_", GONE)},
    "SERAPHCV": {"no SERAPH as its best_esti": ("best_estimator_.class", "PairSERAPH")},
}
"""What is said of a file where arrays, or a value of the header, are replaced or gone."""


@pytest.fixture
def path(fitted, tmp_path):
    save_model(fitted["SERAPH"], tmp_path / "model.npz")
    return tmp_path / "model.npz"


def refusal(path):
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


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
        arrays[last] = None
        if damage[1] is GONE:
            del inner[last]
    write(path, header, {name: a for name, a in arrays.items() if a is not None})
    assert message in refusal(path)


def test_failure_path_a_class_whose_module_cannot_be_imported(fitted, path, monkeypatch):
    save_model(fitted["GDM"], path)
    monkeypatch.setitem(sys.modules, "seraph_cvx.baselines", None)
    assert "its class GDM cannot be imported" in refusal(path)


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_failure_path_a_pickle_is_not_opened(path, tmp_path):
    trap = np.array([Trap(tmp_path / "sprung")], dtype=object)
    header, arrays = read(path)
    write(path, header, {**arrays, "metric_": trap})
    assert "'metric_' is no array of plain numbers" in refusal(path)
    path.write_bytes(_saved(trap))
    refusal(path)
    path.write_bytes(trap.dumps())
    refusal(path)
    assert not (tmp_path / "sprung").exists()
    np.load(io.BytesIO(_saved(trap)), allow_pickle=True)
    assert (tmp_path / "sprung").exists()  # the trap works, where somebody opens it


def _saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_failure_path_files_that_are_something_else(path):
    header, arrays = read(path)
    write(path, header, arrays, save=np.savez_compressed)
    assert "compressed" in refusal(path)
    for text, message in [
        (b"{", ""),
        (b"\xff", ""),
        (b"[1, 2]", "no JSON object"),
        (b'{"format": NaN}', "its header holds NaN"),
        (b"[" * 100_000, ""),
    ]:
        write(path, text, arrays)
        assert message in refusal(path)
    np.savez(path, **arrays)
    assert "it has no header" in refusal(path)
    for content in (b"", b"1.0 0.0\n0.0 1.0\n"):
        path.write_bytes(content)
        refusal(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        load_model(path)


def test_failure_path_an_entry_that_claims_more_than_it_has(path):
    header, arrays = read(path)
    entries = {name: _saved(array) for name, array in arrays.items()}
    entries["header"] = _saved(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    entries["metric_"] = entries["metric_"].replace(b"(4, 4), }" + b" " * 8, b"(4, 4000000000), }")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(f"{name}.npy", data)
    assert "not as long as its shape (4, 4000000000) says" in refusal(path)
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as archive,
    ):
        archive.writestr("metric_.npy", entries["components_"])
    assert "two of its entries have one name" in refusal(path)


def zip_entry(name, data):
    """A stored entry as it stands in a zip file: its own header, then its bytes."""
    numbers = (20, 0, 0, 0, 33, zlib.crc32(data), len(data), len(data), len(name), 0)
    return struct.pack("<4s5H3L2H", b"PK\3\4", *numbers) + name + data


def zip_line(name, data, offset, stored=None):
    """Its line in the directory at the file's end; `stored` is what it says of its size there."""
    stored = len(data) if stored is None else stored
    sizes = (zlib.crc32(data), stored, len(data), len(name), 0, 0, 0, 0, 0, offset)
    return struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 33, *sizes) + name


def zip_file(body, lines):
    directory = b"".join(lines)
    numbers = (0, 0, len(lines), len(lines), len(directory), len(body), 0)
    return body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *numbers)


def nested(n_entries, n_bytes):
    """A zip file whose every entry holds the next one as its numbers, the last one zeros."""
    body, places = bytes(n_bytes), []
    for k in range(n_entries):
        name, data = b"e%d.npy" % k, _saved(np.frombuffer(body, dtype=np.uint8))
        body = zip_entry(name, data)
        places.append((name, data, len(body)))
    return zip_file(body, [zip_line(n, d, len(body) - length) for n, d, length in places])


def test_failure_path_entries_that_hold_each_other_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "nested.npz"
    path.write_bytes(nested(n_entries=100, n_bytes=500_000))
    with zipfile.ZipFile(path) as archive:  # it would unfold a hundredfold
        assert sum(entry.file_size for entry in archive.infolist()) > 100 * 500_000
    tracemalloc.start()
    try:
        message = refusal(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "more than the" in message
    assert peak < 4 * path.stat().st_size


@pytest.mark.parametrize(
    ("offset", "stored", "message"),
    [
        (0, None, "it has no header"),  # as far as the archive goes, all is well
        (10**9, None, ""),
        (-9, None, ""),
        (0, 9, ""),
        (0, 2**32 - 2, "its entries declare 4294967294 bytes, more than the"),
    ],
)
def test_failure_path_an_entry_that_is_not_where_or_what_it_says(tmp_path, offset, stored, message):
    path = tmp_path / "shared.npz"
    data = _saved(np.arange(3, dtype=np.uint8))
    line = zip_line(b"a", data, 16 + offset, stored)
    path.write_bytes(zip_file(bytes(16) + zip_entry(b"a", data), [line]))
    assert message in refusal(path)


def test_failure_path_an_empty_array_of_endless_rows(tmp_path):
    path = tmp_path / "endless.npz"
    endless = _saved(np.empty((0, 3))).replace(b"3), }" + b" " * 30, b"3" * 31 + b"), }")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", endless)
    assert "not as long as its shape (0, 3333333333333333333333333333333) says" in refusal(path)


def test_failure_path_cut_off_anywhere_or_with_a_bit_turned(path, fitted):
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        refusal(path)
    rng = np.random.default_rng(0)
    refused = 0
    for place in [*rng.integers(0, len(whole), 280), *range(len(whole) - 20, len(whole))]:
        turned = bytearray(whole)
        turned[place] ^= 1 << rng.integers(8)
        path.write_bytes(turned)
        if (again := load_or_none(path)) is None:
            refused += 1
        else:  # it was a time stamp, or some such, of the archive
            assert np.array_equal(again.metric_, fitted["SERAPH"].metric_)
            assert again.get_params() == fitted["SERAPH"].get_params()
    assert refused > 240


def load_or_none(path):
    """The model, or None where it is refused; any other exception is a failure."""
    try:
        return load_model(path)
    except ValueError:
        return None

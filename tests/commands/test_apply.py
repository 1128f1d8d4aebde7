"""Evidence that `seraph-cvx apply` does to new rows what the saved model does to them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import assert_answered_in_words, run, words
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seraph_cvx import SERAPH, KernelSERAPH, LabeledOnly, load_model, save_model
from seraph_cvx.cli.tables import TableError, read_table
from seraph_cvx.datasets import load

NAMES = ["sepal length", "sw", "pl", "pw"]


@pytest.fixture
def flowers(tmp_path, monkeypatch):
    """Iris: 100 flowers, 13 of them labeled, as a table; and the other 50."""
    monkeypatch.chdir(tmp_path)
    X, y = load("iris")
    kinds = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    learned = pd.DataFrame(X, columns=NAMES)[np.arange(150) % 3 > 0]
    labels = np.where(np.arange(100) % 8 == 0, kinds[np.arange(150) % 3 > 0], None)
    learned.assign(species=labels).to_csv("flowers.csv", index=False)
    new = pd.DataFrame(X, columns=NAMES)[np.arange(150) % 3 == 0]
    return learned, labels, new


def read_rows(path):
    """The numbers of a table to the last bit, and its column predicted if it has one."""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    m = len(header) - (header[-1] == "predicted")
    return np.array([row[:m] for row in rows], dtype=float), [row[-1] for row in rows]


@pytest.mark.parametrize("switch", ["--standardize", "--no-standardize"])
def test_fit_then_load_model_then_transform_gives_the_numbers_of_apply(flowers, switch):
    learned, labels, new = flowers
    assert run("fit", "flowers.csv", "--label", "species", "--out", "m.npz", switch).exit_code == 0
    new[NAMES[::-1]].assign(comment="x").to_csv("new.csv", index=False)
    result = run("apply", "m.npz", "new.csv", "--predict")
    assert result.exit_code == 0, result.output
    assert "columns not used in the fit, ignored: 'comment'" in words(result.stderr)
    written, predicted = read_rows("new.transformed.csv")
    by_hand = load_model("m.npz").transform(new)
    assert np.array_equal(written, by_hand)
    scaler = [StandardScaler()] if switch == "--standardize" else []
    nearest = LabeledOnly(KNeighborsClassifier(1))
    pipeline = make_pipeline(*scaler, SERAPH(), nearest).fit(learned, labels)
    np.testing.assert_allclose(by_hand, pipeline[:-1].transform(new), rtol=1e-9, atol=1e-9)
    assert predicted == pipeline.predict(new).tolist()
    assert f"setosa ({predicted.count('setosa')})" in words(result.stdout)


def test_the_commands_of_the_guide_classify_new_flowers(flowers, repository):
    page = (repository / "examples/guide/command-line.md").read_text(encoding="utf-8")
    block = page.partition("## From a table")[2].partition("```sh\n")[2].partition("```")[0]
    flowers[2].to_csv("new.csv", index=False)
    for command in block.splitlines():
        assert run(*command.split()[1:]).exit_code == 0
    truth = np.repeat(["setosa", "versicolor", "virginica"], 50)[np.arange(150) % 3 == 0]
    assert np.mean(np.array(read_rows("classified.csv")[1]) == truth) > 0.9
    named = set(re.findall(r"`(--[a-z-]+)", page.partition("| the table has")[2]))
    assert (
        {"--drop", "--force"} < named <= set(re.findall(r"--[a-z-]+", run("fit", "--help").output))
    )


def test_text_and_missing_numbers_are_treated_as_in_the_fit(flowers):
    learned, labels, _ = flowers
    color = np.array(["red", "blue", "green"])[np.arange(100) % 3]
    table = learned.assign(color=color, size=np.where(np.arange(100) % 2, "L", "S"))
    table.insert(1, "code", np.arange(100) + 7)
    table.iloc[4, 2] = np.nan
    table.assign(species=labels).to_csv("mixed.csv", index=False)
    asked = ["fit", "mixed.csv", "--label", "species"]
    options = ["--drop", "code", "--one-hot", "color", "--one-hot", "size", "--impute", "median"]
    result = run(*asked, *options)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    features = [*NAMES, "color=blue", "color=green", "color=red", "size=S"]
    model = load_model("mixed.metric.npz")
    assert model.feature_names_in_.tolist() == features
    hot = table[NAMES].assign(
        **{f"color={c}": (color == c) * 1.0 for c in ("blue", "green", "red")},
        **{"size=S": (table["size"] == "S") * 1.0},
    )
    expected = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), SERAPH())
    by_hand = expected.fit(hot, labels).transform(hot)  # a fit of its own: the same to rounding
    np.testing.assert_allclose(model.transform(hot), by_hand, rtol=1e-9, atol=1e-9)
    table.iloc[:5].to_csv("new.csv", index=False)
    assert run("apply", "mixed.metric.npz", "new.csv", "--out", "z.csv").exit_code == 0
    assert np.array_equal(read_rows("z.csv")[0], model.transform(hot.iloc[:5]))
    table.iloc[:5].assign(color="pink").to_csv("new.csv", index=False)
    result = run("apply", "mixed.metric.npz", "new.csv", "--out", "z.csv", "--force")
    assert "the column 'color' has values not seen in the fit, ignored: 'pink'" in words(
        result.stderr
    )


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
def test_decimal_commas_and_another_encoding_give_the_same_metric(flowers, encoding):
    learned, labels, new = flowers
    assert run("fit", "flowers.csv", "--label", "species").exit_code == 0
    options = ["--decimal", ",", "--encoding", encoding]
    how = {"sep": ";", "decimal": ",", "encoding": encoding, "index": False}
    learned.assign(größe=labels).to_csv("komma.csv", **how)
    assert run("fit", "komma.csv", "--label", "größe", *options).exit_code == 0
    new.to_csv("new.csv", index=False)
    new.to_csv("neu.csv", **how)
    for model in ("flowers.metric.npz", "komma.metric.npz"):
        assert run("apply", model, "new.csv", "--out", "a.csv", "--force").exit_code == 0
        assert run("apply", model, "neu.csv", "--out", "b.csv", "--force", *options).exit_code == 0
        assert Path("a.csv").read_text() == Path("b.csv").read_text()


BAD = {
    "text": ([], ["'red'", "--one-hot color", "--drop color"]),
    "empty": (["--drop", "color"], ["the cell is empty", "--impute median"]),
    "comma": (["--drop", "color", "--impute", "mean"], ["'1,5'", "or use '--decimal ,'"]),
    "point": (["--drop", "color", "--impute", "mean", "--decimal", ","], ["'2.0'", "a comma"]),
    "no such column": (["--drop", "Color"], ["--drop Color", "is not a column", "'color'"]),
    "the label": (["--one-hot", "kind"], ["'kind' is the label column"]),
    "encoding": (["--encoding", "klingon"], ["--encoding klingon", "no such encoding"]),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_answered_with_an_option_of_the_command(flowers, case):
    Path("bad.csv").write_text("color;a;b;kind\nred;2.0;;u\nblue;1.5;1,5;v\n")
    options, culprits = BAD[case]
    assert_answered_in_words(run("fit", "bad.csv", "--label", "kind", *options), culprits)
    if case == "text":
        with pytest.raises(TableError) as caught:  # as verify, compare and bench read it
            read_table(Path("bad.csv"), "kind")
        assert "--" not in str(caught.value)


def test_columns_that_are_missing_are_named_before_anything_is_written(flowers, tmp_path):
    new = flowers[2]
    assert run("fit", "flowers.csv", "--label", "species", "--out", "m.npz").exit_code == 0
    for table, culprits in [
        (new.rename(columns={"sw": "SW"}), ["lacks 1 of the 4", "Did you mean 'SW'?"]),
        (new[["pl"]], ["lacks 3", "'sepal length', 'sw', 'pw'"]),
        (new.iloc[:0], ["no points"]),
        (pd.concat([new, new[["pl"]]], axis=1), ["2 columns named 'pl'"]),
        (new.assign(pl=""), ["Row 2", "'pl'", "the cell is empty", "remove the row."]),
    ]:
        table.to_csv("new.csv", index=False)
        assert_answered_in_words(run("apply", "m.npz", "new.csv"), culprits)
    assert not list(tmp_path.glob("*.transformed.csv"))


def test_an_existing_file_a_missing_one_and_one_that_is_no_model(flowers):
    flowers[2].to_csv("new.csv", index=False)
    assert run("fit", "flowers.csv", "--label", "species", "--out", "m.npz").exit_code == 0
    Path("z.csv").write_text("yesterday's")
    asked = ["apply", "m.npz", "new.csv", "--out"]
    assert_answered_in_words(run(*asked, "z.csv"), ["z.csv exists already: --force replaces it"])
    assert Path("z.csv").read_text() == "yesterday's"
    assert run(*asked, "z.csv", "--force").exit_code == 0
    assert_answered_in_words(run("apply", "no.npz", "new.csv"), ["There is no file no.npz"])
    assert_answered_in_words(run("apply", "new.csv", "new.csv"), ["new.csv cannot be loaded"])


def test_models_of_python_without_names_or_labeled_points(flowers):
    learned, labels, new = flowers
    y = np.where(np.equal(labels, None), -1, labels == "setosa")
    save_model(SERAPH().fit(learned.to_numpy(), y), "plain.npz")
    new.to_csv("new.csv", index=False)
    assert run("apply", "plain.npz", "new.csv", "--predict", "--out", "z.csv").exit_code == 0
    assert Path("z.csv").read_text().startswith("seraph0,seraph1,seraph2,seraph3,predicted\n")
    assert set(read_rows("z.csv")[1]) == {"0", "1"}
    new.assign(more=1.0).to_csv("new.csv", index=False)
    result = run("apply", "plain.npz", "new.csv")
    assert_answered_in_words(result, ["4 features but not their names", "5 columns"])
    save_model(KernelSERAPH(tol=1e-3).fit(learned[20:60], labels[20:60]), "kernel.npz")
    result = run("apply", "kernel.npz", "new.csv", "--predict")
    assert_answered_in_words(result, ["kernel.npz holds no labeled points", "KernelSERAPH"])

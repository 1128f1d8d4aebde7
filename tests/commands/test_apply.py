"""Evidence that `seraph-cvx apply` does to new rows what the saved model does to them."""

from __future__ import annotations

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

FIT = "fit flowers.csv --label species --out m.npz --classifier nearest"


@pytest.fixture
def new(flowers):
    """Fifty of the flowers, without labels, which new.csv holds."""
    rows = flowers[0].iloc[::3]
    rows.to_csv("new.csv", index=False)
    return rows


def read_rows(path):
    """The numbers of a table to the last bit, and its column predicted if it has one."""
    rows = pd.read_csv(path, dtype=str)
    predicted = rows.pop("predicted").tolist() if "predicted" in rows else []
    return rows.to_numpy(dtype=float), predicted


@pytest.mark.parametrize("switch", ["--standardize", "--no-standardize"])
def test_fit_then_load_model_then_transform_gives_the_numbers_of_apply(flowers, new, switch):
    assert run(FIT, switch).exit_code == 0
    new[new.columns[::-1]].assign(comment="x").to_csv("new.csv", index=False)
    result = run("apply m.npz new.csv --predict")
    assert result.exit_code == 0, result.output
    assert "columns not used in the fit, ignored: 'comment'" in words(result.stderr)
    transformed, predicted = read_rows("new.transformed.csv")
    by_hand = load_model("m.npz").transform(new)
    assert np.array_equal(transformed, by_hand)
    scaler = [StandardScaler()] if switch == "--standardize" else []
    nearest = LabeledOnly(KNeighborsClassifier(1))
    pipeline = make_pipeline(*scaler, SERAPH(), nearest).fit(*flowers)
    np.testing.assert_allclose(by_hand, pipeline[:-1].transform(new), rtol=1e-9, atol=1e-9)
    assert predicted == pipeline.predict(new).tolist()
    assert f"setosa ({predicted.count('setosa')})" in words(result.stdout)


def test_fit_reports_held_out_errors_and_apply_uses_what_they_favor(flowers, new):
    said = words(run("fit flowers.csv --label species --out m.npz").stdout)
    model = load_model("m.npz")
    found = model[-1].held_out_
    for phrase in (
        f"{found.n} labels, each held out in turn; the metric relearned in {found.n_fits} fits",
        f"nearest row {found.errors['nearest']:.1%} {found.baseline:.1%}",
        f"logistic regression {found.errors['logistic']:.1%} {found.errors['plain-logistic']:.1%}",
        f"apply --predict will use {found.classifier}",
        f"gain {100 * found.gain:.1f} points, 95% interval {100 * (found.gain - found.margin):.1f}",
        f"the {'learned' if found.keeps_metric else 'Euclidean'} metric",
    ):
        assert phrase.lower() in said.lower()
    assert f"by {found.classifier} from" in words(run("apply m.npz new.csv --predict").stdout)
    assert read_rows("new.transformed.csv")[1] == model.predict(new).tolist()
    chosen = words(
        run("fit flowers.csv --label species --force --classifier plain-logistic").stdout
    )
    assert "apply --predict will use plain-logistic." in chosen
    assert load_model("flowers.metric.npz")[-1].classifier_ == "plain-logistic"


def test_a_fit_that_keeps_the_euclidean_metric_calls_no_other_one_the_metric_of_distances(flowers):
    table, rng = flowers[0].assign(species=flowers[1]), np.random.default_rng(0)
    table[flowers[0].columns] = rng.normal(size=flowers[0].shape)
    table.to_csv("noise.csv", index=False)
    said = words(run("fit noise.csv --label species").stdout)
    assert load_model("noise.metric.npz")[-1].abstained_
    assert "the Euclidean metric, which all distances use instead of A" in said
    assert "A mixed with" not in said


@pytest.mark.usefixtures("new")
def test_the_commands_of_the_guide_classify_new_flowers(repository):
    page = (repository / "examples/guide/command-line.md").read_text(encoding="utf-8")
    block = page.partition("## From a table")[2].partition("```sh\n")[2].partition("```")[0]
    for command in block.splitlines():
        assert run(command.partition(" ")[2]).exit_code == 0
    truth = np.repeat(["setosa", "versicolor", "virginica"], 50)[::3]
    assert np.mean(np.array(read_rows("classified.csv")[1]) == truth) > 0.9
    named = set(re.findall(r"`(--[a-z-]+)", page.partition("the table has")[2]))
    options = set(re.findall(r"--[a-z-]+", run("fit --help").output))
    assert {"--drop", "--force"} < named <= options


def test_text_and_missing_numbers_are_treated_as_in_the_fit(flowers):
    points, labels = flowers
    points.iloc[4, 1] = np.nan
    k = np.arange(150)
    texts = pd.DataFrame({"color": np.array(["red", "blue", "green"])[k % 3]})
    texts["size"] = np.where(k % 2, "L", "S")
    table = points.join(texts).assign(code=k + 7)
    table.assign(species=labels).to_csv("flowers.csv", index=False)
    options = "--drop code --one-hot color --one-hot size --impute median --scale-text value"
    result = run(f"{FIT} {options}")
    assert (result.exit_code, result.stderr) == (0, "")
    hot = points.join(pd.get_dummies(texts, prefix_sep="=", dtype=float).drop(columns="size=L"))
    model = load_model("m.npz")
    assert model.feature_names_in_.tolist() == hot.columns.tolist()
    expected = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), SERAPH())
    by_hand = expected.fit(hot, labels).transform(hot)  # a fit of its own: the same to rounding
    np.testing.assert_allclose(model.transform(hot), by_hand, rtol=1e-9, atol=1e-9)
    for new, noted in ((table[:5], ""), (table[:5].assign(color="pink"), "'color' has values not")):
        new.to_csv("new.csv", index=False)
        result = run("apply m.npz new.csv --out z.csv --force")
        assert noted in words(result.stderr)
        assert "'size'" not in result.stderr
        if not noted:
            assert np.array_equal(read_rows("z.csv")[0], model.transform(hot[:5]))


@pytest.mark.parametrize("scale", ["column", "none"])
def test_a_column_of_text_counts_as_much_as_one_of_numbers(flowers, scale):
    points, labels = flowers
    color = np.array(["red", "blue", "green", "gray"])[np.arange(150) % 7 % 4]
    points.assign(color=color, species=labels).to_csv("flowers.csv", index=False)
    assert run(f"{FIT} --one-hot color --scale-text {scale}").exit_code == 0
    model = load_model("m.npz")
    hot = pd.get_dummies(points.assign(color=color), prefix_sep="=", dtype=float)
    Z = model[:-1].transform(hot[model.feature_names_in_])
    np.testing.assert_allclose(Z[:, :4], StandardScaler().fit_transform(points))
    shares = np.unique(color, return_counts=True)[1] / 150
    total = np.sum(shares * (1.0 - shares))
    np.testing.assert_allclose(
        np.sum(np.var(Z[:, 4:], axis=0)), 1.0 if scale == "column" else total
    )
    gaps = np.ptp(Z[:, 4:], axis=0)  # between a value and another: the same for all
    np.testing.assert_allclose(gaps, 1.0 / np.sqrt(total) if scale == "column" else 1.0)


def test_what_is_kept_of_a_table_comes_first_and_as_it_is_written(flowers):
    points, _ = flowers
    assert run(FIT).exit_code == 0
    ids = [f"{k:03d}" for k in range(150)]
    table = points.assign(name="fleur, blanche", **{"": ids}).rename(columns={"": "id"})
    table.to_csv("new.csv", index=False)
    result = run("apply m.npz new.csv --predict --keep id,name --out z.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    made = "with 2 columns of the table, then the columns seraph0 to seraph3 and predicted"
    assert made in words(result.stdout)
    rows = pd.read_csv("z.csv", dtype=str)
    assert rows.columns.tolist() == ["id", "name", *(f"seraph{k}" for k in range(4)), "predicted"]
    assert rows["id"].tolist() == ids
    assert set(rows["name"]) == {"fleur, blanche"}
    assert rows["predicted"].tolist() == load_model("m.npz").predict(points).tolist()
    assert run("apply m.npz new.csv --keep all --out z.csv --force").exit_code == 0
    kept = pd.read_csv("z.csv", dtype=str)
    assert kept.columns[:6].tolist() == table.columns.tolist()
    pd.testing.assert_frame_equal(kept.iloc[:, :6], pd.read_csv("new.csv", dtype=str))
    refused = run("apply m.npz new.csv --keep ID --out z.csv --force")
    assert_answered_in_words(refused, ["--keep ID", "no such column", "mean 'id'?"])
    table.assign(predicted="?").to_csv("new.csv", index=False)
    refused = run("apply m.npz new.csv --predict --keep all --out z.csv --force")
    assert_answered_in_words(refused, ["a column 'predicted', and so has what is written"])
    assert run("apply m.npz new.csv --keep predicted --out z.csv --force").exit_code == 0


def test_only_values_that_the_fit_has_not_seen_are_called_new(flowers):
    points, labels = flowers
    organic = np.where(np.arange(150) % 2, "yes", "no")
    points.assign(organic=organic, species=labels).to_csv("flowers.csv", index=False)
    assert run(f"{FIT} --one-hot organic").exit_code == 0
    for values, new in (
        (["no"], ""),  # which has no feature of its own
        (["yes", "no"], ""),
        (["maybe"], "'maybe'"),
        (["yes", "maybe"], "'maybe'"),
        (["no", "perhaps", "maybe"], "'maybe', 'perhaps'"),
        (["no", ""], "''"),
    ):
        table = points[:6].assign(organic=np.resize(values, 6))
        table.to_csv("new.csv", index=False)
        result = run("apply m.npz new.csv --out z.csv --force")
        note = f"Note: the column 'organic' has values not seen in the fit, ignored: {new}."
        assert words(result.stderr) == (note if new else "")


BAD = {
    "": ["'red'", "--one-hot color", "--drop color"],
    "--drop color": ["the cell is empty", "--impute median"],
    "--drop color --impute mean": ["'1,5'", 'or use fit --decimal ","'],
    "--drop color --impute mean --decimal ,": ["'2.0'", "a comma"],
    "--drop Color": ["--drop Color", "is not a column", "'color'"],
    "--one-hot kind": ["'kind' is the label column"],
    "--encoding klingon": ["--encoding klingon", "no such encoding"],
    "--impute mean --one-hot color --decimal , --drop a": [],
}


@pytest.mark.parametrize("options", BAD)
def test_what_cannot_be_read_is_answered_with_an_option_of_the_command(folder, options):
    Path("bad.csv").write_text("color;a;b;kind\nred;2.0;;u\nblue;1.5;1,5;v\n")
    result = run(f"fit bad.csv --label kind {options}")
    if BAD[options]:
        assert_answered_in_words(result, BAD[options])
    else:
        assert "2 points, 2 features" in words(result.stdout)


def test_what_cannot_be_applied_is_named_before_anything_is_written(flowers, new, folder):
    points, labels = flowers
    assert run(FIT).exit_code == 0
    y = np.where(np.equal(labels, None), -1, labels == "setosa")
    save_model(SERAPH().fit(points.to_numpy(), y), "plain.npz")
    save_model(KernelSERAPH(tol=1e-3).fit(points[::2], labels[::2]), "kernel.npz")
    Path("z.csv").write_text("yesterday's")
    twice = pd.concat([new, new[["pl"]]], axis=1)
    for command, table, *culprits in [
        ("m.npz", new.rename(columns={"sw": "SW"}), "lacks 1 of the 4", "mean 'SW'?"),
        ("m.npz", new[["pl"]], "lacks 3", "'sepal length', 'sw', 'pw'"),
        ("m.npz", new.iloc[:0], "no points"),
        ("m.npz", twice, "2 columns named 'pl'"),
        ("m.npz", new.assign(pl=""), "Row 2", "'pl'", "cell is empty", "remove the row"),
        ("m.npz --out z.csv", new, "z.csv exists already: --force replaces it"),
        ("no.npz", new, "There is no file no.npz"),
        ("new.csv", new, "new.csv cannot be loaded"),
        ("kernel.npz --predict", new, "holds no labeled points", "KernelSERAPH"),
        ("plain.npz", new.assign(more=1.0), "4 features but not their", "5 columns"),
    ]:
        table.to_csv("new.csv", index=False)
        assert_answered_in_words(run(f"apply {command} new.csv"), culprits)
    assert not list(folder.glob("*.transformed.csv"))
    assert Path("z.csv").read_text() == "yesterday's"
    new.to_csv("new.csv", index=False)
    assert run("apply plain.npz new.csv --predict --out z.csv --force").exit_code == 0
    assert Path("z.csv").read_text().startswith("seraph0,seraph1,seraph2,seraph3,predicted\n")
    assert set(read_rows("z.csv")[1]) == {"0", "1"}

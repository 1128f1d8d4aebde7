"""Evidence that an instance is its name: anyone regenerates the same bits from it."""

from __future__ import annotations

import pytest

from seraph_cvx.race.compare import read_race
from seraph_cvx.race.grading import MStepInstance
from seraph_cvx.race.suite import InstanceSpec, suite

CLOUD = "cloud10-n200-standard-hyper-w1-s0", "cbeec0041bed2a76"
"""Generated points, and the first digits of their SHA-256."""


def test_checksums_of_the_small_suite_and_its_optima(repository):
    """They are those of the committed race; each has an optimum, only the first a trivial one."""
    specs = suite("small")
    race = read_race(repository / "examples/solver-comparison/small/race.jsonl")
    checksums = {name: reference["checksum"] for name, reference in race.references.items()}
    assert {spec.name: MStepInstance(spec).checksum for spec in specs} == checksums
    name, checksum = CLOUD
    assert MStepInstance(InstanceSpec.parse(name)).checksum[:16] == checksum
    first, *others = (spec.objective() for spec in specs)
    assert all(objective.attains_optimum for objective in (first, *others))
    assert first.critical_trace_weight < first.trace_weight
    assert others[0].critical_trace_weight > others[0].trace_weight


def test_an_instance_of_the_data_folder(data_folder, monkeypatch):
    monkeypatch.setenv("SERAPH_CVX_DATA", str(data_folder))
    spec = InstanceSpec.parse("ionosphere-n40-l20-standard-hyper-w1-s0")
    assert spec.objective().pairs.n_points == 40


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wine", "not the name of an instance"),
        ("wine-n40-metric-hyper-w1-s0", "scaling='metric'"),
        ("wine-n40-raw-super-w1-s0", "setting='super'"),
        ("wine-n40-raw-post-w1-s0", "no trace term"),
        ("iris-n151-raw-hyper-w1-s0", "150 points"),
    ],
)
def test_what_there_is_not_is_refused_in_words(name, words):
    with pytest.raises(ValueError, match=words):
        InstanceSpec.parse(name).points()
    with pytest.raises(ValueError, match="the known ones are tiny, small"):
        suite(name)

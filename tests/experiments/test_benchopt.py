"""Evidence that benchopt runs the instances, and that its numbers are the certificate's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from seraph_cvx import solve_m_step
from seraph_cvx.race.suite import InstanceSpec

NAME = "iris-n20-standard-hyper-w1-s0"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("benchopt") is None, reason="benchopt is not installed")
def test_benchopt_runs_the_solvers_on_an_instance_of_the_suite(repository, tmp_path):
    import pandas

    folder = tmp_path / "benchmark"
    shutil.copytree(
        repository / "examples/solver-comparison/benchopt",
        folder,
        ignore=shutil.ignore_patterns("__cache__", "outputs", "__pycache__"),
    )
    command = [sys.executable, "-m", "benchopt", "run", str(folder)]
    command += ["-d", f"suite[instance={NAME}]", "-n", "12", "-r", "1"]
    path = os.pathsep.join([str(repository), *filter(None, [os.environ.get("PYTHONPATH")])])
    made = subprocess.run(
        [*command, "--no-plot", "--no-html", "--no-display"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    (file,) = (folder / "outputs").glob("*.parquet")
    table = pandas.read_parquet(file)
    assert set(table["solver_name"]) > {"newton", "L-BFGS-B"}
    assert set(table["p_dataset_instance"]) == {NAME}
    certificate = solve_m_step(InstanceSpec.parse(NAME).objective(), tol=1e-10).certificate
    lower, upper = certificate.dual_value, certificate.primal_value
    value, gap = table["objective_value"], table["objective_true_gap"]
    assert np.all(value >= lower)
    np.testing.assert_allclose(gap, (value - upper) / value, atol=2e-9)
    assert np.all(table["objective_proved_gap"] >= gap)
    assert table.groupby("solver_name")["objective_true_gap"].min().max() <= 1e-8

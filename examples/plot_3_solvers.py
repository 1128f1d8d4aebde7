"""
One M-step, every solver, one referee
=====================================

Solvers should not grade themselves. Here the same certificate grades every answer, no matter which
method found it and what the method claimed.
"""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from seraph_cvx import MStepObjective, PairSet, compare_solvers
from seraph_cvx.plots import ClaimsDisplay

# %%
# Every fifth iris, standardized; nine of these 30 have a label. That makes 435 pairs and a metric
# of size 4 x 4.
X, classes = load_iris(return_X_y=True)
X, classes = StandardScaler().fit_transform(X[::5]), classes[::5]
y = np.full(len(classes), -1)
for label in range(3):
    y[np.flatnonzero(classes == label)[::4][:3]] = label
objective = MStepObjective(PairSet.from_labels(X, y))

# %%
# Two of our own methods race against two conic solvers, on the primal and on the dual, with two
# tolerances. Each run has its own process. The true gap is the distance from the best proved lower
# bound.
race = compare_solvers(
    objective,
    solvers=["newton", "projected-gradient", "CLARABEL", "SCS"],
    tols=[1e-3, 1e-6],
    time_limit=3.0,
)
print(race.summary())

# %%
# The certificates are right: no answer is worse than its certificate says.
answers = [row for row in race.rows if row["true_gap"] is not None]
assert len(answers) >= 8
assert all(row["true_gap"] <= row["proved_gap"] + 1e-12 for row in answers)

# %%
# Newton's method stops by its certificate, so it has proved what it claims. A conic solver stops by
# residuals in its own scaling, and its "optimal" may be right, wrong, or right but unproved. When
# this was written, SCS claimed 1e-3 on the primal with a true gap of nearly 5e-3.
newton = [row for row in answers if row["solver"] == "newton"]
assert [row["claims"] for row in newton] == [True, True]
assert all(row["proved_gap"] <= row["tol"] for row in newton)
claims = [row for row in answers if row["claims"]]
unproved = [row for row in claims if row["proved_gap"] > row["tol"]]
print(f"{len(claims)} claims of success, {len(unproved)} of them not proved by their own answer")
assert {row["solver"] for row in unproved} <= {"CLARABEL", "SCS"}

# %%
# How large is the gap of each answer as a multiple of its tolerance, and how much does it prove?
display = ClaimsDisplay.from_result(race)
figure = display.draw(title="One M-step, two tolerances, one referee")
figure.set_label("Some answers of conic solvers miss their tolerance, ours do not.")

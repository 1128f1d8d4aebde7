"""Evidence that the problem read is that of the file, and that wrong files get words."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest

from seraph_cvx.proof import certify_problem, read_problem

MPS = """NAME          DIET
* three foods
ROWS
 N  COST
 N  WEIGHT
 L  FAT
 G  IRON
 E  MASS
COLUMNS
    BREAD     COST         1.0   FAT          1.0
    BREAD     IRON         1.0   WEIGHT       9.0
    MILK      COST         2.0   FAT          1.0
    MILK      MASS        -1.0
    SALT      COST        -1.0   MASS         1.0
RHS
    RHS       COST        -5.0
    RHS       FAT          4.0   IRON         1.0
    RHS       MASS         7.0
    OTHER     MASS         99.0
RANGES
    RNG       FAT          2.5   MASS        -3.0
BOUNDS
 UP BND       BREAD        4.0
 LO BND       MILK        -1.0
 UP BND       MILK         1.0
ENDATA
"""
"""bread + 2 milk - salt + 5; 1.5 <= bread + milk <= 4, 1 <= bread <= 4, 4 <= salt - milk <= 7"""

SDPA = """"the largest t with [[1, 1], [1, 4]] - t I PSD, and t <= 10, t >= -3
* minimizes -t
1 = m
2 = blocks
(2, -2)
{-1.0}
0 1 1 1 -1.0
0 1 1 2 -1.0
0 1 2 2 -4.0
1 1 1 1 -1.0
1 1 2 2 -1.0
0 2 1 1 -10.0
1 2 1 1 -1.0
0 2 2 2 -3
1 2 2 2 1
"""

LP = """\\ three foods, as in the other format
Minimize
 cost: bread + 2 milk - salt + 5
Subject To
 low: bread + milk >= 1.5
 fat: bread + milk <= 4
 iron: bread >= 1
 mass: salt - milk <= 7
 mass2: salt - milk >= 4
Bounds
 bread <= 4
 -1 <= milk <= 1
End
"""

CBF = """# every kind of cone
VER
3

OBJSENSE
MIN

POWCONES
1 2
2
1.0
3.0

PSDVAR
1
2

PSDCON
1
2

VAR
14 6
F 1
Q 3
QR 3
EXP 3
@0:POW 3
L+ 1

CON
11 3
L= 9
L- 1
L+ 1

OBJACOORD
6
0 0.5
1 1.0
4 1.0
7 1.0
10 1.0
13 1.0

OBJFCOORD
2
0 0 0 1.0
0 1 1 1.0

OBJBCOORD
100.0

FCOORD
1
0 0 1 0 0.5

ACOORD
10
1 2 1.0
2 3 1.0
3 5 1.0
4 6 1.0
5 8 1.0
6 9 1.0
7 11 1.0
8 12 1.0
9 0 -1.0
10 13 1.0

BCOORD
10
0 -1.0
1 -3.0
2 -4.0
3 -2.0
4 -2.0
5 -1.0
6 -1.0
7 -1.0
8 -2.0
9 6.0

HCOORD
1
0 13 0 0 1.0

DCOORD
2
0 1 0 1.0
0 1 1 1.0
"""


def written(folder, name, text):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def optimum(problem):
    certificate = certify_problem(problem)
    assert certificate.relative_gap < 1e-6, str(certificate)
    return certificate.lower


@pytest.mark.parametrize("name", ["diet.mps", "DIET.QPS", "diet.mps.gz"])
def test_closed_form_a_linear_program_and_its_names(tmp_path, name):
    problem = read_problem(written(tmp_path, name, MPS))
    # bread + milk >= 1.5, salt - milk <= 7, bread >= 1: bread 2.5, milk -1, salt 6
    assert optimum(problem) == pytest.approx(2.5 - 2.0 - 6.0 + 5.0)
    assert problem.variables()[0].entry_names == ("BREAD", "MILK", "SALT")
    assert {c.label: c.entry_names for c in problem.constraints} == {
        "rows at most": ("FAT", "MASS"),
        "rows at least": ("FAT", "IRON", "MASS"),
        "upper bounds": ("BREAD", "MILK"),
        "lower bounds": ("BREAD", "MILK", "SALT"),
    }


def test_formulas_agree_fixed_format_with_spaces_in_names(tmp_path):
    columns = "    {:<8}  {:<8}  {:>12}   {:<8}  {:>12}\n"
    lines = [
        columns.format(*fields) if len(fields := line.split()) == 5 else line + "\n"
        for line in MPS.splitlines()
    ]
    fixed = "".join(lines).replace("BREAD", "A RYE").replace("IRON", "FE 2")
    problem = read_problem(written(tmp_path, "diet.mps", fixed))
    assert optimum(problem) == pytest.approx(-0.5)
    assert problem.variables()[0].entry_names[0] == "A RYE"


def test_formulas_agree_the_same_program_in_the_lp_format(tmp_path):
    problem = read_problem(written(tmp_path, "diet.lp.gz", LP))
    assert optimum(problem) == pytest.approx(-0.5)
    assert problem.variables()[0].entry_names == ("bread", "milk", "salt")
    names = {c.label: c.entry_names for c in problem.constraints}
    assert names["rows at least"] == ("low", "iron", "mass2")


def test_closed_form_a_quadratic_program_in_the_lp_format(tmp_path):
    text = "Maximize\n o: 2 x + 4 y + [ - 2 x ^2 - 2 x * y - 2 y ^2 ] / 2\nSubject To\n r: x <= 0\n"
    text += "Bounds\n x free\n y free\nEnd\n"
    problem = read_problem(written(tmp_path, "form.lp", text))
    assert optimum(problem) == pytest.approx(4.0)


@pytest.mark.parametrize("section", ["QUADOBJ", "QMATRIX", "QSECTION COST"])
def test_closed_form_a_quadratic_program_to_be_maximized(tmp_path, section):
    both = " Y X -1\n" if section == "QMATRIX" else ""
    text = (
        "NAME\nOBJSENSE\n MAX\nROWS\n N COST\n L R\nCOLUMNS\n X COST 2 R 1\n Y COST 4\n"
        f"BOUNDS\n FR B X\n FR B Y\n{section}\n X X -2\n X Y -1\n{both} Y Y -2\nENDATA\n"
    )
    problem = read_problem(written(tmp_path, "form.qps", text))
    # 2x + 4y - x^2 - xy - y^2, x <= 0: at (0, 2)
    assert optimum(problem) == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["t.dat-s", "t.dat-s.gz"])
def test_closed_form_a_semidefinite_program_and_its_blocks(tmp_path, name):
    problem = read_problem(written(tmp_path, name, SDPA))
    assert optimum(problem) == pytest.approx(-(5.0 - 13.0**0.5) / 2.0)
    assert [(c.label, c.entry_names) for c in problem.constraints] == [
        ("block 1", ("1", "2")),
        ("block 2", ("1", "2")),
    ]


@pytest.mark.parametrize("name", ["cones.cbf", "cones.cbf.gz"])
def test_closed_form_every_cone_of_a_conic_file(tmp_path, name):
    problem = read_problem(written(tmp_path, name, CBF))
    # x_0 >= 6; |(3, 4)|; 2 (2 u) >= 2^2; exp(1); (16 * 1^3)^(1/4) >= 2; X_01 = 1; [[x, 1], [1, 1]]
    expected = 100.0 + 3.0 + 5.0 + 1.0 + np.e + 16.0 + 2.0 + 1.0
    assert optimum(problem) == pytest.approx(expected, rel=1e-6)
    names = {constraint.label: constraint.entry_names for constraint in problem.constraints}
    assert names["VAR QR"] == ("4",)
    assert names["CON L-"] == ("9",)
    assert names["PSDVAR 0"] == names["PSDCON 0"] == ("0", "1")


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("a.mps", "FAT          4.0", "FAT          4.x0", "at: a line of RHS is"),
        ("a.mps", "FAT          4.0", "FAT          4.D0", "at: a line of RHS is"),
        ("a.mps", "FAT          4.0", "FAT          nan", "at: a line of RHS is"),
        ("a.mps", "RHS       MASS         7", "RHS       FAT          7", "at: a line of RHS"),
        ("a.mps", "RNG       FAT", "RNG       COST", "at: a line of RANGES is"),
        ("a.mps", "MILK      MASS", "MILK      BREAD", "at: a line of COLUMNS is"),
        ("a.mps", "    BREAD     IRON", "    BREAD     FAT", "at: a line of COLUMNS is"),
        (
            "a.mps",
            "    MILK      COST",
            " M1 'MARKER' 'INTORG'\n    MILK  COST",
            "at: a line of COL",
        ),
        ("a.mps", " UP BND       BREAD", " UP BND       WATER", "at: a line of BOUNDS is"),
        ("a.mps", " LO BND       MILK ", " LO BND       WATER", "at: a line of BOUNDS is"),
        ("a.mps", " LO BND       MILK ", " LO           MILK ", "at: a line of BOUNDS is"),
        ("a.mps", " UP BND       MILK ", " LO BND       MILK ", "line 25: a line of BOUNDS is"),
        ("a.mps", "BREAD        4.0\n", "BREAD       -4.0\n", "at: a line of BOUNDS is"),
        ("a.mps", " UP BND       BREAD", " BV BND       BREAD", "integer variables are not read"),
        ("a.mps", " G  IRON", " G  FAT", "at: a line of ROWS is"),
        ("a.mps", " G  IRON", " Q  IRON", "at: a line of ROWS is a type, N, L, G or E"),
        ("a.mps", " N  COST\n N  WEIGHT\n", " E  COST\n E  WEIGHT\n", "a row of type N"),
        ("a.mps", "ENDATA\n", "", "the file ends before ENDATA"),
        ("a.mps", "RANGES", "RNAGES", "at: a line of RNAGES is not read"),
        ("a.mps", "ROWS", "OBJSENSE\n LEAST\nROWS", "a line of OBJSENSE is MIN or MAX"),
        ("a.mps", "ENDATA", "QSECTION FAT\nENDATA", "at: a line of QSECTION is"),
        ("a.mps", "ENDATA", "QMATRIX\n MILK SALT 1\nENDATA", "symmetric"),
        ("a.mps", "ENDATA", "QUADOBJ\n MILK SALT 1\n SALT MILK 1\nENDATA", "only one triangle"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 2 -4.0", "at: matrix, block, row, column and a number"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 2 2 -4_0", "at: matrix, block, row, column and a number"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 2 2 1e999", "at: a number is such as"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 2 2 inf", "at: a number is such as"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 2 3 -4.0", "at: there is no column of this number"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 1.5 2 -4.0", "at: there is no row of this number"),
        ("a.dat-s", "1 1 2 2 -1.0", "2 1 2 2 -1.0", "at: there is no matrix of this number"),
        ("a.dat-s", "0 2 2 2 -3", "0 2 1 2 -3", "at: the block is diagonal"),
        ("a.dat-s", "0 1 2 2 -4.0", "0 1 2 1 -4.0", "at: this entry has a number in another"),
        ("a.dat-s", "(2, -2)", "(2, 0)", "at: a file begins with"),
        ("a.dat-s", SDPA[110:], "", "the file ends before"),
        ("a.dat-s", SDPA, "", "the file is empty"),
        ("a.cbf", "QR 3", "QR 1", "at: QR 1 is no cone that is read"),
        ("a.cbf", "EXP 3", "EXP* 3", "at: EXP* 3 is no cone that is read"),
        ("a.cbf", "@0:POW 3", "POW 3", "at: POW 3 is no cone that is read"),
        ("a.cbf", "14 6", "15 6", "the cones of VAR do not have 15 rows"),
        ("a.cbf", "OBJSENSE\nMIN", "OBJSENSE\nLEAST", "line 6: OBJSENSE is MIN or MAX"),
        ("a.cbf", "OBJBCOORD\n", "INT\n1\n0\n\nOBJBCOORD\n", "at: INT is no part that is read"),
        ("a.cbf", "DCOORD", "ACOORD", "ACOORD is there twice"),
        ("a.cbf", "9 6.0", "12 6.0", "at: there is no CON of this number"),
        ("a.cbf", "3 -2.0", "3 -2,0", "at: a number is such as"),
        ("a.cbf", "DCOORD\n2", "DCOORD\n3", "the file ends before"),
        ("a.lp", "salt - milk <= 7", "salt - <= milk 7 <", "at: a row is such as"),
        ("a.lp", "salt - milk <= 7", "salt - milk + 3 <= 7", "at: a row is such as"),
        ("a.lp", "salt - milk <= 7", "salt milk <= 7", "at: a row is such as"),
        ("a.lp", "salt - milk <= 7", "salt - milk - salt <= 7", "at: a row is such as"),
        ("a.lp", "salt - milk <= 7", "2 3 salt - milk <= 7", "at: a row is such as"),
        ("a.lp", "salt - milk <= 7", "salt <= 7 + milk", "at: a row is such as"),
        ("a.lp", "salt + 5", "salt + 5 + bread", "at: the objective is such as"),
        ("a.lp", " bread <= 4", " water <= 4", "at: bounds are such as"),
        ("a.lp", " bread <= 4", " bread <= -4", "at: bounds are such as"),
        ("a.lp", " bread <= 4\n", " bread\n", "at: bounds are such as"),
        ("a.lp", "End", " bread <= 5\nEnd", "at: bounds are such as"),
        ("a.lp", "End", "General\n bread\nEnd", "integer variables are not read"),
        ("a.lp", "End", "", "End is missing"),
        ("a.lp", "End", "End\nBounds\n salt <= 1", "a heading is expected"),
        ("a.txt", "", "", "the ending must say the format"),
    ],
)
def test_a_wrong_file_gets_a_line_and_a_cure(tmp_path, name, old, new, words):
    text = {"mps": MPS, "lp": LP, "dat-s": SDPA, "cbf": CBF, "txt": ""}[name.partition(".")[2]]
    assert old in text
    changed = text.replace(old, new, 1)
    line = changed.count("\n", 0, changed.index(new)) + 1
    with pytest.raises(ValueError, match=name) as raised:
        read_problem(written(tmp_path, name, changed))
    assert words.replace("at:", f"line {line}:") in str(raised.value)


def test_a_conflict_names_the_rows_of_the_file(tmp_path):
    problem = read_problem(
        written(tmp_path, "a.mps", MPS.replace("BREAD        4.0", "BREAD        0.5"))
    )
    certificate = certify_problem(problem)
    assert certificate.infeasible
    assert certificate.conflict.names == (
        "rows at least (entry IRON)",
        "upper bounds (entry BREAD)",
    )


def test_a_file_that_is_cut_off_or_missing_says_so(tmp_path):
    path = written(tmp_path, "a.mps.gz", MPS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="no whole gzip file"):
        read_problem(path)
    with pytest.raises(FileNotFoundError):
        read_problem(tmp_path / "b.mps")


def test_a_large_file_is_read_and_compiled_in_the_time_of_its_entries(tmp_path):
    """A constraint a row would take CVXPY ten seconds."""
    n = 10_000
    rows = "".join(f" L r{k}\n" for k in range(n))
    columns = "".join(f" x{k} cost -1 r{k} 1\n x{k} r{(k + 1) % n} 1\n" for k in range(n))
    rights = "".join(f" RHS r{k} 2\n" for k in range(n))
    text = f"NAME\nROWS\n N cost\n{rows}COLUMNS\n{columns}RHS\n{rights}ENDATA\n"
    problem = read_problem(written(tmp_path, "large.mps", text))
    began = time.process_time()
    data, _, _ = problem.get_problem_data("CLARABEL")
    assert time.process_time() - began < 2.0
    assert data["A"].shape == (2 * n, n)
    assert problem.constraints[0].entry_names[1] == "r1"

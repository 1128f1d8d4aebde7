"""The exercises as they are handed out: their TODOs, and a fingerprint of every other statement.

A test compares them with examples/exercises, which the installed package does not have.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exercise:
    """What a student's file has to keep.

    Attributes
    ----------
    name : str
        As in the name of its file.
    todos : tuple of str
        The functions to fill in, in order.
    marks : str
        The fingerprints of all other statements, in order, separated by spaces.
    """

    name: str
    todos: tuple[str, ...]
    marks: str

    @property
    def statements(self) -> list[str]:
        """The fingerprints one by one."""
        return self.marks.split()


EXERCISES = {
    1: Exercise(
        "1_convexity",
        ("surprise", "m_step_loss", "counterexample"),
        "09855d b718c9 4c5d0e e47762 cb007a 5af671 5233c8 9aace4 425639 0ecd53 7f606e 159e20 "
        "85b005 d9e649 885038 d9fdd1 e66b63 f53214 906a4b 46543a c1e23a 4cb1cd 8488da 0b029e "
        "6223f7 3bbe2e 3e4934 eb503b",
    ),
    2: Exercise(
        "2_gradient",
        ("scores", "probability_dissimilar", "gradient"),
        "b718c9 4c5d0e 332146 051055 4cb0a9 9aace4 9a19ea dbba9d a78e08 c43cec 2a6d5a 3d4059 "
        "e66b63 ed2a92 a32218 04f5a6 cddbce 61cc8a e9cca0",
    ),
    3: Exercise(
        "3_one_logistic_term",
        ("label_sums", "one_term", "twin"),
        "b718c9 35d82d 2369aa 23e04c a60265 922a10 5233c8 99a189 5ad798 0da15f abcab8 98ac17 "
        "c9c19e bc9245 154a76 571af9 6ec7d1 03bca6 828be0 7696ae f3d0c5",
    ),
    4: Exercise(
        "4_weak_duality",
        ("dual_value", "dual_matrix", "feasible"),
        "b718c9 7ce160 3249f6 862d75 aa2672 c75ad6 13b4ee dbba9d a78e08 c43cec 2a6d5a 282a6d "
        "d5710f 3f2f08 658ea8 d9179c e324a2 6ef144 8724fa b593aa c2bce7 40f834 587681 f322c1 "
        "bc2b30 de1943 6a6221 c072b3",
    ),
    5: Exercise(
        "5_trace_weight",
        ("falling_direction", "critical_trace_weight"),
        "b718c9 7dbb2a a55c22 0dcaa1 0a21ff fe295d f0ba7f ff0872 f7b7b5 31191c 2c537c 4e3521 "
        "ac0ca4 11a084 adf0b5 a01a50 605d73 951fd9 e80c3a 401c05 dc4aed 0ea2fc 025c14 e8d13d "
        "1316d1 2f0504 18bf82 71cd46 06e2ac",
    ),
    6: Exercise(
        "6_e_step",
        ("state_e_step", "closed_form", "optimal_value"),
        "09855d b718c9 8d7733 39949f 3027fd b98bf6 d7593a e63e8a 912117 aa1e9b 60c0e0 db605a "
        "906a4b 5ae2f9 106030 185f02 c0d1f7 07cee1 555c53 cea549 257388 370d70 4fd951",
    ),
    7: Exercise(
        "7_descent",
        ("objective_7", "descent"),
        "b718c9 596cdf b769a4 86b91c 72849a 5233c8 16092f 13d817 3aa38e 791242 41fc24 0adf63 "
        "471a12 a05a13 d3f4bd 329e01 468bbe 51855e 020c5b 71ded5 450be3 32d064 451729",
    ),
    8: Exercise(
        "8_own_solver",
        ("project", "my_solver"),
        "b718c9 7ce160 7742c2 e81118 dae313 96367d a97a2a 841c83 535e48 c6abf3 dd6391 849a0a "
        "50865f 93d450 e2bf4e 930d13 57cc3d 5dc530 a4ab4d b912b5 85a998 0b4a1f f23e58 104a77 "
        "2d6c26 5d2bb1 2499d2",
    ),
}
"""By number."""

"""The paper's rivals, each from its own publication; Section 5 and the defaults are run with them.

With the folder `examples/reproduction` on the path: ``from rivals import GDM``.
"""

from __future__ import annotations

from .euclidean import Euclidean
from .gdm import GDM
from .itml import ITML
from .ldm import LDM
from .lmnn import LMNN
from .mfda import MFDA
from .nca import NCA

__all__ = ["GDM", "ITML", "LDM", "LMNN", "MFDA", "NCA", "Euclidean"]

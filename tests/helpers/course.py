"""The chapters of the course, importable by their names."""

from __future__ import annotations

import sys
from pathlib import Path

LECTURE = Path(__file__).resolve().parents[2] / "examples" / "lecture"
sys.path.insert(0, str(LECTURE))  # as marimo does for a notebook

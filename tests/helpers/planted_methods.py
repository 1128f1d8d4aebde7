"""Methods of one's own for the runs of the reproduction, most of them with a fault."""

from __future__ import annotations

import os
import warnings

import numpy as np


def boom(X, y, seed):
    raise ValueError("planted trouble")


def leave(X, y, seed):
    os._exit(3)


def not_finite(X, y, seed):
    return np.full((1, X.shape[1]), np.nan)


def warn(X, y, seed):
    warnings.warn("planted doubt", stacklevel=1)
    return np.eye(X.shape[1])

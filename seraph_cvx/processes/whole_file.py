"""Writes a file so that a half-written one is never seen."""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

ABANDONED = 60.0
"""A draft that was not written to for so many seconds is of a process that was killed."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader sees all of `content`, or what was there before.

    If `path` is a link, the file that it points to is replaced. The draft's name is short, whatever
    that of the file; drafts of the same file that a killed process left are removed.
    """
    target = Path(os.path.realpath(path))
    mark = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    draft = target.with_name(f".{mark}.{uuid4().hex[:8]}.part")
    try:
        for other in target.parent.glob(f".{mark}.*.part"):
            with suppress(OSError):
                if time.time() - other.stat().st_mtime > ABANDONED:
                    other.unlink()
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
    finally:
        with suppress(OSError):  # where even the folder is gone
            draft.unlink(missing_ok=True)

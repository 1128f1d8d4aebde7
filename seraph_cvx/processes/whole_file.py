"""Writes a file so that a half-written one is never seen."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader sees all of `content`, or what was there before.

    If `path` is a link, the file that it points to is replaced.
    """
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        draft.unlink(missing_ok=True)

"""A command that serves a page on this machine, for as long as a browser looks at it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager


@contextmanager
def served(folder, *module):
    """The address where `python -m module` serves, once it answers; its home is the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = {name: str(folder) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    command = [sys.executable, "-m", *map(str, module), "--port", str(port)]
    with (folder / "log").open("w") as log:
        streams = {"stdout": log, "stderr": log}
        process = subprocess.Popen(command, **streams, env=os.environ | home, cwd=folder)
    for _ in range(600):
        with socket.socket() as there:
            if there.connect_ex(("127.0.0.1", port)) == 0:
                break
        assert process.poll() is None, (folder / "log").read_text()
        time.sleep(0.1)
    yield f"127.0.0.1:{port}"
    process.terminate()
    process.wait(20)
    assert "Traceback" not in (folder / "log").read_text()

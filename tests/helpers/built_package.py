"""The package as it would be uploaded, and an environment that has it and what [all] brings."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "seraph-cvx"


@dataclass(frozen=True)
class Built:
    """The two files of an upload, and the second one unpacked."""

    wheel: Path
    sdist: Path
    unpacked: Path


def run(*command, cwd, fails=False):
    """The output of a command that leads to no other copy of the package, and has to succeed."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=1200,  # on a busy machine
    )
    assert (done.returncode != 0) == fails, done.stdout
    return done.stdout


def build(repository, folder):
    """Build the source distribution, and the wheel from it, without a network."""
    run(sys.executable, "-m", "build", "--no-isolation", "-o", folder, repository, cwd=folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Built(wheel, sdist, unpacked)


def distributions_of_all(requirements):
    """What `pip install seraph-cvx[all]` brings, by name: its requirements and all of theirs.

    A distribution that is not installed is left out: nothing could import it here.
    """
    found, seen = {}, set()
    waiting = [(NAME, extra) for extra in ("", "all")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        lines = requirements
        if name != NAME:
            try:
                found[name] = metadata.distribution(name)
            except metadata.PackageNotFoundError:
                continue
            lines = found[name].requires or []
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted = canonicalize_name(requirement.name)
                waiting += [(wanted, inner) for inner in ("", *requirement.extras)]
    return found


def install(wheel, folder):
    """The Python of a fresh environment with the wheel, what [all] brings, and nothing else.

    What [all] brings is linked from the environment of the tests: that takes a second.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps")
    run(*pip, wheel, cwd=folder)
    found = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    site = Path(found.strip())
    (information,) = site.glob("seraph_cvx-*.dist-info")
    own = metadata.PathDistribution(information)
    for distribution in distributions_of_all(own.requires).values():
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(distribution.locate_file(top)).resolve())
    return python

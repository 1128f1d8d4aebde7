"""The `seraph-cvx` command, also ``python -m seraph_cvx``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say in one sentence what it lacks."""
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"The seraph-cvx command needs {missing}, which is not installed: "
            'run  pip install "seraph-cvx[cli]"\n'
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="seraph-cvx")


if __name__ == "__main__":
    main()

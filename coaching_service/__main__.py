"""The command line: `coaching-service --help`."""

from __future__ import annotations

import os
import sys

from coaching_service.command_line.group import main

__all__ = ["main", "run"]


def run() -> None:
    """Run the command line, and exit without waiting for threads: with a frozen database they cannot be interrupted."""
    code = 0
    try:
        main()
    except SystemExit as exited:
        code = exited.code if isinstance(exited.code, int) else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    run()

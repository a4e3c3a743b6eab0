"""Run the mutants of scripts/mutants.json: small changes of meaning that the tests must notice."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[1]
TIMEOUT = 600


class Mutant(TypedDict):
    """A change of `old`, which occurs once in `file`, to `new`.

    One of `tests` must notice it: test files, or single tests of long files.
    """

    name: str
    file: str
    old: str
    new: str
    tests: list[str]


def load_mutants() -> list[Mutant]:
    """Return the mutants in the order in which they run."""
    mutants: list[Mutant] = json.loads((ROOT / "scripts/mutants.json").read_text("utf-8"))
    return mutants


def copy_repository(folder: Path) -> None:
    """Copy the files of the working tree that git tracks to `folder`."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - git from PATH
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def run_mutant(folder: Path, mutant: Mutant) -> str:
    """Apply a mutant in `folder`, run its tests, restore the file, and return the result.

    `killed`: a test noticed it. `survived`: none did. `timed out`: after 10 minutes. `stale`: `old` does not occur
    exactly once, so the mutant must be adapted. `broken`: pytest could not run the tests.
    """
    path = folder / mutant["file"]
    source = path.read_text("utf-8") if path.is_file() else ""
    if source.count(mutant["old"]) != 1:
        return "stale"
    path.write_text(source.replace(mutant["old"], mutant["new"]), "utf-8")
    try:
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant["tests"]]
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}  # the copy caches bytecode: each start is faster
        done = subprocess.run(  # noqa: S603 - arguments from our own file
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_text(source, "utf-8")
    return {0: "survived", 1: "killed"}.get(done.returncode, "broken")


def main() -> int:
    """Run the chosen mutants one after another; returns 1 if one survived or could not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to run whose name contains one of these (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names and exit")
    options = parser.parse_args()
    mutants = [
        mutant
        for mutant in load_mutants()
        if not options.names or any(name in mutant["name"] for name in options.names)
    ]
    if options.list:
        print("\n".join(mutant["name"] for mutant in mutants))
        return 0
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy_repository(Path(folder))
        for mutant in mutants:
            results[mutant["name"]] = run_mutant(Path(folder), mutant)
            print(f"{results[mutant['name']]:9} {mutant['name']}", flush=True)
    failures = {name: result for name, result in results.items() if result != "killed"}
    print(f"\n{len(results)} run, {len(results) - len(failures)} killed")
    for name, result in failures.items():
        print(f"{result}: {name}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

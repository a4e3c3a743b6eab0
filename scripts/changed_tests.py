"""Print the test files of scripts/test --fast: those without a database, and those of what changed against main."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = (
    "tests/unit",
    "tests/contract/test_architecture.py",
    "tests/contract/test_policy.py",
)
# A change in these modules concerns the feature that is named by their folder or by the module itself.
FEATURE = re.compile(r"coaching_service/(?:people|library|training|progress|lifecycle)/(\w+)/")
MODULE = re.compile(r"coaching_service/(?:\w+/)*(\w+)(?:/__init__)?\.py")
TEMPLATE = re.compile(r"coaching_service/web/templates/(?:\w+/)?(\w+)\.html")


def changed_files() -> set[str]:
    """The files that differ from the branch main, untracked files included, relative to the repository."""
    base = _git("merge-base", "main", "HEAD")
    changed = _git("diff", "--name-only", base[0] if base else "HEAD")
    return {*changed, *_git("ls-files", "--others", "--exclude-standard")}


def select_tests(changed: Iterable[str], tests: Iterable[str]) -> set[str]:
    """The paths among `tests` that were changed, or that are named for a feature, module or template in `changed`."""
    changed, tests = set(changed), set(tests)
    words = {_singular(match[1]) for path in changed for match in _subject(path)}
    return (changed & tests) | {test for test in tests if any(word in Path(test).stem for word in words)}


def _subject(path: str) -> list[re.Match[str]]:
    match = FEATURE.match(path) or TEMPLATE.fullmatch(path) or MODULE.fullmatch(path)
    return [match] if match else []


def _singular(word: str) -> str:
    return word.removesuffix("s")


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607 - git from PATH, fixed arguments
    return done.stdout.split("\n")[:-1]


def main() -> None:
    """Print the selected files, one per line."""
    folder = ROOT / "tests"
    tests = [
        file.relative_to(ROOT).as_posix()
        for file in folder.rglob("test_*.py")
        if not {"browser", "proofs"} & {*file.parts}
    ]
    always = {path for path in ALWAYS if (ROOT / path).exists()}
    print("\n".join(sorted(always | select_tests(changed_files(), tests))))


if __name__ == "__main__":
    main()

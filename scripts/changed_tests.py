"""Print the test files of scripts/test --fast: those without a database, and those of what changed against main.

The tests of a module are those that import it, and those that are named for it or for its feature.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]
ALWAYS = (
    "tests/unit",
    "tests/contract/test_architecture.py",
    "tests/contract/test_policy.py",
)
# A change there concerns copies, exports, tools and pages of workouts, which are in other layers.
TRAINING, PLANNED_FIELDS = "coaching_service/training/", "tests/mcp/test_planned_fields.py"
MAX_IMPORTERS = 8  # the tests of the modules that import a changed one run as well, unless there are more of them
# A change in these modules concerns the feature that is named by their folder or by the module itself.
FEATURE = re.compile(r"coaching_service/(?:people|library|training|progress|lifecycle)/(\w+)/")
MODULE = re.compile(r"coaching_service/(?:\w+/)*(\w+)(?:/__init__)?\.py")
TEMPLATE = re.compile(r"coaching_service/web/templates/(?:\w+/)?(\w+)\.html")


def changed_files() -> set[str]:
    """The files that differ from the branch main, untracked files included, relative to the repository."""
    base = _git("merge-base", "main", "HEAD")
    changed = _git("diff", "--name-only", base[0] if base else "HEAD")
    return {*changed, *_git("ls-files", "--others", "--exclude-standard")}


def select_tests(
    changed: Iterable[str], tests: Iterable[str], imports: Mapping[str, Set[str]] | None = None
) -> set[str]:
    """The paths among `tests` that were changed, that import what was, or that are named for its feature or module.

    `imports` has the files that each file imports.
    """
    changed, tests, imports = set(changed), set(tests), imports or {}
    importers = {path: {file for file, imported in imports.items() if path in imported} for path in changed}
    near = {path: {file for file in of if file.startswith("coaching_service/")} for path, of in importers.items()}
    subjects = changed.union(*(files for files in near.values() if len(files) <= MAX_IMPORTERS))
    words = {_singular(match[1]) for path in subjects for match in _subject(path)}
    named = {test for test in tests if any(word in Path(test).stem for word in words)}
    planned = {PLANNED_FIELDS} if any(path.startswith(TRAINING) for path in changed) else set()
    return ((changed | planned).union(*importers.values()) & tests) | named


def read_imports() -> dict[str, set[str]]:
    """The files of the service and its tests that each of these files imports, by their paths."""
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for folder in ("coaching_service", "tests")
        for file in (ROOT / folder).rglob("*.py")
        if ".venv" not in file.parts  # of the generated clients
    }
    paths = {module: file.relative_to(ROOT).as_posix() for module, file in files.items()}
    imports: dict[str, set[str]] = {}
    for module, file in files.items():
        modules = [
            name
            for node in ast.walk(ast.parse(file.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            for name in (node.module or "", f"{node.module}.{alias.name}")
        ]
        imports[paths[module]] = {paths[name] for name in modules if name in paths}
    return imports


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
    print("\n".join(sorted(always | select_tests(changed_files(), tests, read_imports()))))


if __name__ == "__main__":
    main()

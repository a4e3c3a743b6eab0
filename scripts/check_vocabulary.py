"""Report words of scripts/vocabulary.txt in identifiers, docstrings, comments, templates and Markdown.

A docstring of a function in `coaching_service` also begins with a verb, and hangs on no clause such as "of which".

    python scripts/check_vocabulary.py [--count] [FILE OR FOLDER ...]

Prints one line per occurrence, or with --count a table of occurrences by folder, and exits with 1 if there are any.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORD_LIST = ROOT / "scripts" / "vocabulary.txt"
PATHS = ("coaching_service", "tests", "benchmarks", "scripts", "docs", ".github")
SUFFIXES = {".py", ".html", ".md"}
INSTALLED = {".venv", "node_modules"}


@dataclass(frozen=True)
class Vocabulary:
    """The avoided words: identifiers in lower case, patterns for prose and docstrings, first words of docstrings."""

    identifiers: frozenset[str]
    prose: re.Pattern[str]
    docstrings: re.Pattern[str]
    not_verbs: frozenset[str]


@dataclass(frozen=True)
class Finding:
    """One occurrence of an avoided word: `kind` is `identifier`, `word`, `clause` or `first word`."""

    path: Path
    line: int
    kind: str
    word: str


def read_vocabulary(text: str) -> Vocabulary:
    """Parse the word list. Raises ValueError for an entry outside of the sections."""
    sections: dict[str, list[str]] = {"[identifiers]": [], "[prose]": [], "[docstrings]": [], "[not verbs]": []}
    section = None
    for line in text.splitlines():
        entry = line.partition("#")[0].strip()
        if entry.startswith("["):
            section = sections[entry]
        elif entry and section is None:
            raise ValueError(f"{entry!r} is not in a section")
        elif entry and section is not None:
            section.append(entry.lower())
    prose, clauses = (_pattern(sections[name]) for name in ("[prose]", "[docstrings]"))
    return Vocabulary(frozenset(sections["[identifiers]"]), prose, clauses, frozenset(sections["[not verbs]"]))


def _pattern(entries: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of any of the words and phrases."""
    phrases = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in entries)
    return re.compile(rf"(?<![\w-])(?:{phrases})(?![\w-])" if phrases else r"(?!)", re.IGNORECASE)


def check_file(path: Path, vocabulary: Vocabulary) -> Iterator[Finding]:
    """The occurrences of avoided words in a Python file, a template or a Markdown file."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        if path.stem in vocabulary.identifiers:
            yield Finding(path, 1, "identifier", path.stem)
        tree = ast.parse(text)
        for line, name in identifiers(tree):
            if name.strip("_").lower() in vocabulary.identifiers:
                yield Finding(path, line, "identifier", name)
        if "coaching_service" in path.parts:
            yield from check_docstrings(path, tree, vocabulary)
        passages = python_prose(text, tree)
    elif path.suffix == ".html":
        passages = template_prose(text)
    else:
        passages = markdown_prose(text)
    for line, passage in passages:
        for match in vocabulary.prose.finditer(without_code_spans(passage)):
            lines_before = passage[: match.start()].count("\n")
            yield Finding(path, line + lines_before, "word", " ".join(match[0].lower().split()))


# Decorators of functions that are no property, page, route or tool.
_TRANSPARENT = {"cache", "classmethod", "on_worker_thread", "staticmethod", "transactional"}


def check_docstrings(path: Path, tree: ast.AST, vocabulary: Vocabulary) -> Iterator[Finding]:
    """Yield the docstrings that hang on a clause, and those of functions that do not begin with a verb."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if not docstring:
            continue
        line = node.body[0].lineno
        for match in vocabulary.docstrings.finditer(without_code_spans(docstring)):
            yield Finding(path, line, "clause", " ".join(match[0].lower().split()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_noun(node):
            first = docstring.split(maxsplit=1)[0].lower()
            if first in vocabulary.not_verbs:
                yield Finding(path, line, "first word", first)


def _is_noun(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is decorated as something that a noun describes, such as a property or a page."""
    names = (ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in function.decorator_list)
    return any(name.rpartition(".")[2] not in _TRANSPARENT for name in names)


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that a module defines, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name


def python_prose(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, with the lines they begin on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            docstring := ast.get_docstring(node, clean=False)
        ):
            yield node.body[0].lineno, docstring
    if "#" not in text:  # most modules have no comment, and the tokenizer takes longer than the parser
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def template_prose(text: str) -> Iterator[tuple[int, str]]:
    """The text and comments of a Jinja template, without tags and expressions."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    yield 1, re.sub(r"{{.*?}}|{%.*?%}|<[^>]*>", blank, text, flags=re.DOTALL)


def markdown_prose(text: str) -> Iterator[tuple[int, str]]:
    """Markdown text without code blocks."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    yield 1, re.sub(r"^```.*?^```", blank, text, flags=re.DOTALL | re.MULTILINE)


def without_code_spans(passage: str) -> str:
    """A passage in which code spans are blank."""
    return re.sub(r"`[^`]*`", lambda span: re.sub(r"[^\n]", " ", span[0]), passage)


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """The checked files among `paths` and in the folders among them."""
    for path in paths:
        files = sorted(_walk(path)) if path.is_dir() else [path]
        yield from (file for file in files if file.suffix in SUFFIXES and file.is_file())


def _walk(folder: Path) -> Iterator[Path]:
    """The files below a folder, without those of installed packages."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in INSTALLED]
        yield from (Path(parent, name) for name in names)


def main(arguments: list[str]) -> int:
    """Check the given files, or the whole repository. Return the exit code."""
    with_count = "--count" in arguments
    named = [Path(argument).resolve() for argument in arguments if argument != "--count"]
    paths = named or [*(ROOT / path for path in PATHS), *sorted(ROOT.glob("*.md"))]
    vocabulary = read_vocabulary(WORD_LIST.read_text("utf-8"))
    findings = [finding for file in files_in(paths) for finding in check_file(file, vocabulary)]
    if with_count:
        print_counts(findings)
    else:
        for finding in findings:
            print(f"{relative(finding.path)}:{finding.line}: avoid the {finding.kind} {finding.word!r}")
    return 1 if findings else 0


def relative(path: Path) -> Path:
    """The path from the root of the repository."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def print_counts(findings: Sequence[Finding]) -> None:
    """Print the number of findings by folder."""
    counts = Counter((relative(finding.path).parent.as_posix(), finding.kind) for finding in findings)
    for folder in sorted({folder for folder, _ in counts}):
        print(f"{counts[folder, 'identifier']:5} identifiers {counts[folder, 'word']:5} words  {folder}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The checker of avoided words finds them in names and prose, and nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_vocabulary.py"
WORD_LIST = """
# a comment
[identifiers]
found
told  # with a reason
[prose]
nobody
is led to
[docstrings]
of which
[not verbs]
the
"""


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("check_vocabulary", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def findings(checker: ModuleType, file: Path, text: str) -> list[tuple[int, str, str]]:
    file.write_text(text)
    vocabulary = checker.read_vocabulary(WORD_LIST)
    return sorted((each.line, each.kind, each.word) for each in checker.check_file(file, vocabulary))


def test_defined_names_are_found_as_whole_identifiers(checker: ModuleType, tmp_path: Path) -> None:
    code = (
        "def found(told): ...\n"
        "async def is_found(): ...\n"
        "class Found: ...\n"
        "_TOLD = 1\n"
        "import os as found\n"
        "for told in range(3): ...\n"
        "if (told := 1): ...\n"
        "class NotFound(Exception): ...\n"
        "x = response.found\n"
        "text = 'nobody found this'\n"
    )
    assert findings(checker, tmp_path / "module.py", code) == [
        (1, "identifier", "found"),
        (1, "identifier", "told"),
        (3, "identifier", "Found"),
        (4, "identifier", "_TOLD"),
        (5, "identifier", "found"),
        (6, "identifier", "told"),
        (7, "identifier", "told"),
    ]


def test_module_names_are_identifiers(checker: ModuleType, tmp_path: Path) -> None:
    assert findings(checker, tmp_path / "found.py", "") == [(1, "identifier", "found")]


def test_docstrings_and_comments_are_prose(checker: ModuleType, tmp_path: Path) -> None:
    code = (
        '"""Nobody reads this.\n\nThe caller is led\nto the page; `nobody` is a name here."""\n'
        "x = 1  # for nobody\n"
        "y = 'nobody'  # the nobody-user, isVisible, somebody_else\n"
    )
    assert findings(checker, tmp_path / "module.py", code) == [
        (1, "word", "nobody"),
        (3, "word", "is led to"),
        (5, "word", "nobody"),
    ]


def test_template_text_is_prose_but_not_its_code(checker: ModuleType, tmp_path: Path) -> None:
    template = "{# for nobody #}\n<p class='nobody'>{{ nobody }}</p>\n{% if nobody %}Nobody{% endif %}\n"
    assert findings(checker, tmp_path / "page.html", template) == [(1, "word", "nobody"), (3, "word", "nobody")]


def test_markdown_text_is_prose_but_not_its_code(checker: ModuleType, tmp_path: Path) -> None:
    text = "# Title\n```sh\necho nobody\n```\n`nobody` and nobody\n"
    assert findings(checker, tmp_path / "page.md", text) == [(5, "word", "nobody")]


def test_entry_outside_of_a_section_is_rejected(checker: ModuleType) -> None:
    with pytest.raises(ValueError, match="'word' is not in a section"):
        checker.read_vocabulary("word\n")


def test_project_word_list_is_valid(checker: ModuleType) -> None:
    vocabulary = checker.read_vocabulary(checker.WORD_LIST.read_text("utf-8"))
    assert {"told", "one"} <= vocabulary.identifiers
    assert vocabulary.prose.search("Nobody is told.")
    assert vocabulary.docstrings.search("Return the items of\nwhich nothing is done.")
    assert vocabulary.docstrings.search("Count it; it got none.") and vocabulary.docstrings.search(
        "Use that of the caller."
    )
    assert {"the", "whether", "returns"} <= vocabulary.not_verbs


def test_ordinary_english_identifiers_are_accepted(checker: ModuleType) -> None:
    """A false alarm: add the word here, and remove it from the list."""
    ordinary = (
        "door", "dress", "everybody", "everything", "found", "house", "made", "standing", "together", "whole",
        "body", "first", "last", "left", "missing", "other", "part", "present", "read", "rest", "seen", "set", "sum",
    )  # fmt: skip
    vocabulary = checker.read_vocabulary(checker.WORD_LIST.read_text("utf-8"))
    assert vocabulary.identifiers & set(ordinary) == set()


def test_docstrings_begin_with_a_verb_and_hang_on_no_clause(checker: ModuleType, tmp_path: Path) -> None:
    code = (
        '"""The module."""\n'
        "class Items:\n"
        '    """The items of\n    which nothing is done."""\n'
        "    @property\n"
        "    def size(self):\n"
        '        """The number of items."""\n'
        "    @staticmethod\n"
        "    def make():\n"
        '        """The items."""\n'
        "@pages.get('')\n"
        "async def page():\n"
        '    """The page of which this is the text."""\n'
        "def items():\n"
        '    """Return the items; `of which` is code."""\n'
    )
    folder = tmp_path / "coaching_service"
    folder.mkdir()
    assert findings(checker, folder / "module.py", code) == [
        (3, "clause", "of which"),
        (10, "first word", "the"),
        (13, "clause", "of which"),
    ]
    assert findings(checker, tmp_path / "module.py", code) == []


def test_files_of_installed_packages_are_not_checked(checker: ModuleType, tmp_path: Path) -> None:
    for folder in (".venv/lib", "node_modules", "."):
        (tmp_path / "clients" / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / "clients" / folder / "module.py").touch()
    assert list(checker.files_in([tmp_path])) == [tmp_path / "clients" / "module.py"]

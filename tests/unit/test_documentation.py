"""The documentation refers to things that exist: links, commands, settings, modules and functions."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.commands import all_commands

ROOT = Path(__file__).parents[2]
DECISIONS = sorted(file for file in (ROOT / "docs" / "decisions").glob("*.md") if file.name != "README.md")
PARTS = ("**Context.**", "**Choice.**", "**Consequences.**")
GUIDE = ROOT / "docs" / "adding-a-resource.md"


def test_security_policy_names_the_supported_minor_version() -> None:
    """Return the version of the last release in the change log."""
    released = re.search(r"^## (\d+\.\d+)\.\d+ ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released is not None
    assert f"| Latest minor release ({released[1]}.x) | Yes |" in (ROOT / "SECURITY.md").read_text("utf-8")


def test_address_of_the_repository_is_one_setting() -> None:
    """scripts/repository writes it to the other files."""
    address = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]
    assert json.loads((ROOT / "server.json").read_text("utf-8"))["repository"]["url"] == address
    assert json.loads((ROOT / "clients" / "n8n" / "package.json").read_text("utf-8"))["homepage"] == address
    for name in ("README.md", "CONTRIBUTING.md"):
        assert re.findall(r"git clone (\S+)", (ROOT / name).read_text("utf-8")) == [address], name


def test_repository_script_changes_the_address_everywhere(tmp_path: Path) -> None:
    nodes = ("clients/n8n/package.json", "clients/n8n/credentials/CoachingServiceApi.credentials.ts")
    files = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "server.json", *nodes)
    for name in (*files, "scripts/repository"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / "scripts" / "repository"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    former = run().stdout.strip()
    assert run("https://code.example.net/team/fork").returncode == 0
    assert run().stdout.strip() == "https://code.example.net/team/fork"
    for name in files:
        text = (tmp_path / name).read_text("utf-8")
        assert "https://code.example.net/team/fork" in text and former not in text, name
    assert run("not an address").returncode == 1


def markdown_files() -> list[Path]:
    """Every Markdown file of the repository."""
    folders = [ROOT / "docs", ROOT / ".github", ROOT / "benchmarks"]
    return sorted([*ROOT.glob("*.md"), *(file for folder in folders for file in folder.rglob("*.md"))])


def without_code(text: str) -> str:
    """Markdown text without code blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as GitHub derives them."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(file: Path) -> list[str]:
    """The relative links of a Markdown file that lead nowhere."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(file.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("file", markdown_files(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_relative_links_resolve(file: Path) -> None:
    assert broken_links(file) == []


def test_broken_links_and_anchors_are_found(tmp_path: Path) -> None:
    (tmp_path / "target.md").write_text("# A title, with: marks\n```sh\n# no heading\n```\n")
    file = tmp_path / "file.md"
    file.write_text(
        "[a](target.md#a-title-with-marks) [b](target.md#no-heading) [c](absent.md) [d](https://example.com) `[e](f.md)`"
    )
    assert broken_links(file) == ["target.md#no-heading", "absent.md"]


def test_every_command_is_documented() -> None:
    documentation = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    commands = {name: command.help for name, command in all_commands().items()}
    assert [name for name in commands if f"| `{name}` |" not in documentation] == []
    assert [name for name, text in commands.items() if not text] == []


@pytest.mark.parametrize("file", DECISIONS, ids=lambda file: file.stem)
def test_decisions_have_the_common_form(file: Path) -> None:
    text = file.read_text("utf-8")
    assert len(text.splitlines()) <= 75
    assert re.match(r"# \S.*\n\n\S", text)
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, body = section.split("\n", 1)
        assert len(body.strip().splitlines()) <= 25, title
        parts = re.findall(r"\*\*\w+\.\*\*", body)
        assert tuple(parts) == PARTS or (parts == [] and "Superseded by [" in body), title
        assert re.match(r"\s*\*?20\d\d-\d\d-\d\d", body), title


def test_pages_of_decisions_are_listed_with_their_former_numbers() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| \[.+?\]\(([\w-]+\.md)\): .+ \| (.*) \|$", index, re.MULTILINE)
    assert sorted(name for name, _ in rows) == [file.name for file in DECISIONS]
    for name, numbers in rows:
        text = (ROOT / "docs" / "decisions" / name).read_text("utf-8")
        assert ", ".join(re.findall(r"formerly (\d{4})\.", text)) == numbers, name
    assert sorted(re.findall(r"\b0\d{3}\b", " ".join(numbers for _, numbers in rows))) == [
        f"{number:04}" for number in range(1, 124)
    ]


def cited_sections(text: str) -> set[int]:
    """Return the sections of docs/contract.md that docstrings and comments of a module cite: `contract 7 and 8`."""
    cited: set[int] = set()
    for numbers in re.findall(r"\bcontract,?(?:\s+sections?)?((?:\s+(?:to |and )?\d{1,2}\b,?)+)", text, re.IGNORECASE):
        words = re.findall(r"\d+|to", numbers)
        for position, word in enumerate(words):
            if word == "to":
                cited |= set(range(int(words[position - 1]), int(words[position + 1])))
            else:
                cited.add(int(word))
    return cited


def test_citations_are_read_as_numbers() -> None:
    text = '"""A (contract, sections 1 to 3). Contract 7: 8 sets. Contract 10, 11 and 12."""'
    assert cited_sections(text) == {1, 2, 3, 7, 10, 11, 12}


def test_cited_sections_of_the_contract_exist() -> None:
    """Tests cite nothing else: the contract is the only document with rules that they pin."""
    headings = re.findall(r"^## (\d+)\. \S", (ROOT / "docs" / "contract.md").read_text("utf-8"), re.MULTILINE)
    sections = {int(number) for number in headings}
    assert [int(number) for number in headings] == sorted(sections)
    cited: set[int] = set()
    for folder in ("tests", "coaching_service", "benchmarks", "clients"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text("utf-8") if not {"node_modules", ".venv"} & set(file.parts) else ""
            assert cited_sections(text) <= sections, file
            assert not re.search(r"\b(?:[Ss]pecification|[Ii]ssue),?(?: section)? \d", text), file
            cited |= cited_sections(text)
    assert cited >= {1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 14, 15}


def sections_of(file: str) -> dict[str, str]:
    """Return the sections of a Markdown file by heading; what is before them has the heading of the page."""
    parts = re.split(r"^##? ", (ROOT / file).read_text("utf-8"), flags=re.MULTILINE)[1:]
    return dict(part.split("\n", 1) for part in parts)


def test_contributor_reads_3000_words_before_the_first_change() -> None:
    contributing, architecture = sections_of("CONTRIBUTING.md"), sections_of("docs/architecture.md")
    assert "Read 3,000 words" in contributing["Before the first change"]
    del contributing["More tests"], contributing["Dependencies"]
    headings = list(architecture)
    to_read = headings[headings.index("Principles") : headings.index("Data") + 1]
    assert {"Layers", "A feature", "A request", "Transactions and events", "Errors"} <= set(to_read)
    guide = sections_of("docs/adding-a-resource.md")["Adding a field to a workout"]
    texts = [*contributing.values(), *(architecture[heading] for heading in to_read), guide]
    assert 2_000 < sum(len(text.split()) for text in texts) <= 3_000


def test_page_of_performance_is_short() -> None:
    """Conditions, earlier figures and attempts belong to benchmarks/README.md."""
    assert len((ROOT / "docs" / "performance.md").read_text("utf-8").splitlines()) < 150


def test_promises_name_tests_that_exist() -> None:
    promises = re.findall(r"\[`(test_\w+)`\]\(\.\./([\w/.]+)\)", (ROOT / "docs" / "promises.md").read_text("utf-8"))
    assert len(promises) > 30
    absent = [name for name, path in promises if f"def {name}(" not in (ROOT / path).read_text("utf-8")]
    assert absent == []


def test_guide_names_files_that_exist() -> None:
    for path in re.findall(r"`((?:coaching_service|tests)/[\w/.]+\.(?:py|html|json|txt))`", GUIDE.read_text("utf-8")):
        assert (ROOT / path).exists() or path == "tests/progress/test_goals.py", path


def test_architecture_names_packages_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    layers = text.split("## Layers")[1].split("## A feature")[0]
    for row in re.findall(r"^\| (`.*?) \|", layers, re.MULTILINE):
        for name in re.findall(r"`([\w/.]+)`", row):
            assert (ROOT / "coaching_service" / name).exists(), name

"""mypy reads Partial[T], Change[T] and Part[T, Literal[...]] as TypedDicts with the fields of T."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
from __future__ import annotations
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict
from coaching_service.core.fields import Change, Label, Part, Partial, take

class Base(TypedDict):
    name: Annotated[str, Label("Name")]

class Record(Base):
    level: NotRequired[int | None]
    rest: Partial[Later]

class Later(TypedDict):
    reason: str

RecordChange: TypeAlias = Change[Record]
Named: TypeAlias = Part[Record, Literal["name"]]

def use(fields: Partial[Record], change: RecordChange, named: Named, record: Record) -> None:
    reveal_type(fields)
    reveal_type(change)
    reveal_type(named)
    reveal_type(take(Base, record))
    fields["name"] = 3
    change["other"] = 1
    named["level"]
    changed: RecordChange = {"version": "1"}

def wrong(unknown: Part[Record, Literal["unknown"]], number: Partial[int]) -> None: ...
"""
REVEALED = [
    "TypedDict({'name'?: str, 'level'?: int | None, 'rest'?: TypedDict({'reason'?: str})})",
    "TypedDict({'name'?: str, 'level'?: int | None, 'rest'?: TypedDict({'reason'?: str}), 'version'?: int | None})",
    "TypedDict({'name': str})",
    "TypedDict(program.Base, {'name': str})",
]
REFUSED = [
    'Value of "name" has incompatible type "int"; expected "str"',
    '"other" is not a valid TypedDict key; expected one of ("name", "level", "rest", "version")',
    '"level" is not a valid TypedDict key; expected one of ("name")',
    'Incompatible types (expression has type "str", TypedDict item "version" has type "int | None")',
    "Part[...] needs the names of fields of the TypedDict, as a Literal",
    "Partial[...] needs a TypedDict",
]


def test_parts_of_typed_dicts_are_checked(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    configuration = tmp_path / "mypy.ini"
    configuration.write_text(f"[mypy]\nstrict = true\nplugins = {ROOT / 'scripts/mypy_plugin.py'}\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--config-file",
        str(configuration),
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    report = subprocess.run([*command, str(program)], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert [line.split('"', 1)[1].rstrip('"') for line in report.splitlines() if "Revealed" in line] == REVEALED
    for message in REFUSED:
        assert message in report, report

"""mypy knows the fields of Partial[T], Change[T] and Part[T, Literal[...]], and of documents read with a projection."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
from __future__ import annotations
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict
from typing import Final
from coaching_service.core.database.documents import Documents
from coaching_service.core.fields import Change, Label, Part, Partial, take

FIELDS: Final = ("level", "rest.reason")

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

async def read(documents: Documents[Record]) -> None:
    reveal_type(await documents.find(fields=("name",)))
    reveal_type(await documents.find_one(FIELDS))
    (await documents.find())[0]["level"]

def wrong(unknown: Part[Record, Literal["unknown"]], number: Partial[int]) -> None: ...
"""
DOCUMENTS = """
from collections.abc import Sequence
from typing import Generic, TypeVar

D = TypeVar("D")

class Documents(Generic[D]):
    async def find(self, *, fields: Sequence[str] | None = None) -> list[D]: ...
    async def find_one(self, fields: Sequence[str] | None = None) -> D | None: ...
"""
REVEALED = [
    "TypedDict({'name'?: str, 'level'?: int | None, 'rest'?: TypedDict({'reason'?: str})})",
    "TypedDict({'name'?: str, 'level'?: int | None, 'rest'?: TypedDict({'reason'?: str}), 'version'?: int | None})",
    "TypedDict({'name': str})",
    "TypedDict(program.Base, {'name': str})",
    "list[TypedDict({'name': str})]",
    "TypedDict({'level'?: int | None, 'rest': TypedDict({'reason'?: str})}) | None",
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
    core = tmp_path / "coaching_service" / "core"
    core.mkdir(parents=True)
    for name in ("fields", "ids"):
        shutil.copy(ROOT / "coaching_service" / "core" / f"{name}.py", core)
    (core / "database").mkdir()
    for package in (core.parent, core, core / "database"):
        (package / "__init__.py").touch()
    (core / "database" / "documents.pyi").write_text(DOCUMENTS)
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = true\nplugins = {ROOT / 'scripts/mypy_plugin.py'}\n")
    command = [sys.executable, "-m", "mypy", "program.py"]
    report = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert [line.split('"', 1)[1].rstrip('"') for line in report.splitlines() if "Revealed" in line] == REVEALED
    for message in REFUSED:
        assert message in report, report

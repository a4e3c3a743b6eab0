"""The house keeps its shape: who imports whom, who names the driver, how long a file is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from coaching_service.core.database.documents import declared_collections
from coaching_service.core.ids import ObjectId
from tests.client import CoachClient

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "coaching_service"
MODULES = sorted(PACKAGE.rglob("*.py"))
DRIVER = ("motor", "pymongo", "bson", "gridfs")
AIOHTTP_ROOMS = ("core/http/", "mcp/", "oauth/", "web/", "authentication.py", "app.py", "runtime.py")


def imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms(*names: str) -> list[Path]:
    return [module for module in MODULES if any(name.split(".")[0] in names for name in imports(module))]


def where(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_only_stores_and_the_storage_room_name_the_driver() -> None:
    strangers = [
        m for m in rooms(*DRIVER) if m.name != "store.py" and not where(m).startswith(("core/database/", "core/ids.py"))
    ]
    assert strangers == []


def test_only_the_doors_name_aiohttp() -> None:
    assert [m for m in rooms("aiohttp") if not where(m).startswith(AIOHTTP_ROOMS)] == []


def test_a_store_is_private_to_its_folder() -> None:
    for module in MODULES:
        for name in imports(module):
            if name.startswith("coaching_service.") and name.endswith(".store"):
                owner = PACKAGE.joinpath(*name.split(".")[1:-1])
                assert module.parent == owner, f"{where(module)} imports {name}"


@pytest.mark.parametrize("module", [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))], ids=lambda m: m.name)
def test_a_file_is_short_enough_to_hold_in_mind(module: Path) -> None:
    assert len(module.read_text("utf-8").splitlines()) <= 300


def test_every_module_says_in_a_sentence_what_it_is() -> None:
    for module in MODULES:
        about = ast.get_docstring(ast.parse(module.read_text("utf-8")))
        assert about, where(module)


def test_routes_and_tools_handle_no_errors_themselves() -> None:
    for module in MODULES:
        if module.stem in ("routes", "tools"):
            assert not [n for n in ast.walk(ast.parse(module.read_text())) if isinstance(n, ast.Try)], where(module)


def test_every_collection_is_found_by_company_or_says_why_not() -> None:
    for name, collection in declared_collections().items():
        ours = [index for index in collection.indexes if index.fields[0] == "companyId"]
        assert ours or collection.cross_company_reason, name
        for index in collection.indexes:
            timed = index.expire_after is not None
            assert index.fields[0] == "companyId" or collection.cross_company_reason or timed, f"{name}.{index.name}"


@pytest.mark.parametrize("collection", sorted(declared_collections()))
async def test_no_condition_reaches_into_another_company(coach: CoachClient, collection: str) -> None:
    """The company is that of the one asking, in what is read and in what is changed."""
    where = {"companyId": ObjectId()}
    for narrowed in (declared_collections()[collection].read_filter, declared_collections()[collection].write_filter):
        assert narrowed(coach.ctx, {"name": "x"})["companyId"] is not None
        with pytest.raises(RuntimeError, match="within the company"):
            narrowed(coach.ctx, where)


def test_what_belongs_to_a_client_is_found_by_the_client() -> None:
    """Erasing and exporting a client look there."""
    assert [name for name, each in declared_collections().items() if each.client_field and not each.by_client] == []

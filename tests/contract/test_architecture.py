"""Rules of the code base: which modules import the driver and aiohttp, length of files, documentation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from coaching_service.core.database.documents import registry
from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.syntax import parse

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "coaching_service"
MODULES = sorted(PACKAGE.rglob("*.py"))
TEST_MODULES = [
    file for file in sorted((ROOT / "tests").rglob("*.py")) if not {"node_modules", ".venv"} & {*file.parts}
]
DRIVER = ("motor", "pymongo", "bson", "gridfs")
AIOHTTP_PACKAGES = (
    "core/http/",
    "core/outbound.py",
    "documentation/",
    "mcp/",
    "oauth/",
    "web/",
    "app.py",
    "http_server.py",
    "serving.py",
)


@dataclass
class Module:
    """What the tests need of a module, whose tree takes long to make."""

    imports: list[str]
    # The full names of what it imports, and of what it reads from modules that it imports.
    used_names: set[str]
    docstring: str | None
    catches_exceptions: bool


@cache
def read_module(module: Path) -> Module:
    tree = parse(module.read_text("utf-8"))
    nodes = list(ast.walk(tree))
    return Module(
        list(imports_of(nodes)),
        set(used_names(nodes)),
        ast.get_docstring(tree),
        any(isinstance(node, ast.Try) for node in nodes),
    )


def imports_of(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def used_names(nodes: list[ast.AST]) -> Iterator[str]:
    modules = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"


def imports(module: Path) -> list[str]:
    return read_module(module).imports


def importers(*names: str) -> list[Path]:
    return [module for module in MODULES if any(name.split(".")[0] in names for name in imports(module))]


def path_of(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_only_stores_and_the_database_package_import_the_driver() -> None:
    others = [
        m
        for m in importers(*DRIVER)
        if m.name != "store.py" and not path_of(m).startswith(("core/database/", "core/ids.py", "installation/"))
    ]
    assert others == []


def test_only_the_http_packages_import_aiohttp() -> None:
    assert [m for m in importers("aiohttp") if not path_of(m).startswith(AIOHTTP_PACKAGES)] == []


def modules_with(*texts: str) -> list[str]:
    return [path_of(module) for module in MODULES if any(text in module.read_text("utf-8") for text in texts)]


def test_one_place_acquires_locks_of_schedules() -> None:
    """It does so before a transaction: what services acquire themselves might be inside the caller's transaction."""
    assert modules_with("schedule_locks") == ["core/database/context.py"]


def test_other_locks_are_held_for_no_transaction() -> None:
    assert modules_with(
        "asyncio.Lock(", "(asyncio.Lock)", "=asyncio.Lock)", "asyncio.Semaphore", "asyncio.Condition"
    ) == [
        "core/background.py",  # of a background task, which inserts many documents
        "core/rate_limits.py",  # one update, before the request
        "core/slots.py",  # acquired by RequestSlot
        "mcp/endpoint.py",  # an import
        "supervisor.py",  # has no database
    ]


FEATURES = ("people", "library", "training", "progress", "lifecycle", "integrations")


def test_stores_and_modules_with_an_underscore_are_private_to_their_feature() -> None:
    for module in MODULES:
        for name in imports(module):
            if not name.startswith("coaching_service.") or not re.search(r"\.(_\w+|store|\w+_store)$", name):
                continue
            *parents, last = name.split(".")[1:]
            owner = PACKAGE.joinpath(*parents)
            if (owner / f"{last}.py").exists():  # a module, not a function of that name
                feature = PACKAGE.joinpath(*parents[:2]) if parents[0] in FEATURES else owner
                assert feature in module.parents, f"{path_of(module)} imports {name}"


def test_collections_are_private_to_their_feature() -> None:
    """Also where a small feature has its collection in the module of its service."""
    collections = {}
    for module in MODULES:
        parts = module.relative_to(PACKAGE).with_suffix("").parts
        for name in re.findall(r"^(\w+) = Documents\[", module.read_text("utf-8"), re.MULTILINE):
            if parts[0] in FEATURES:
                collections[".".join(("coaching_service", *parts, name))] = parts[:2]
    assert len(collections) > 40
    for module in MODULES:
        used_in = module.relative_to(PACKAGE).with_suffix("").parts[:2]
        for name in read_module(module).used_names & set(collections):
            assert used_in == collections[name], f"{path_of(module)} uses {name}"


def test_a_module_that_no_other_feature_imports_is_private() -> None:
    """Its name begins with an underscore, but for the modules that every feature may have."""
    common = re.compile(
        r"\.(service|models|schemas|routes|tools|events|store|subscribers|checks|jobs|history|transfer)$"
    )
    importers_of: dict[str, set[str]] = {}
    for module in MODULES:
        for name in imports(module):
            importers_of.setdefault(name, set()).add(".".join(module.relative_to(PACKAGE).parts[:2]))
    for module in MODULES:
        parts = module.relative_to(PACKAGE).parts
        if parts[0] not in FEATURES or len(parts) < 3 or module.stem.startswith("_"):
            continue
        name = ".".join(("coaching_service", *module.relative_to(PACKAGE).with_suffix("").parts))
        if not common.search(name) and not name.endswith(("_store", "models", "schemas", "fields")):
            assert importers_of.get(name, set()) - {".".join(parts[:2])}, f"{name} is private: begin it with _"


def test_every_module_has_a_docstring() -> None:
    for module in MODULES:
        assert read_module(module).docstring, path_of(module)


def test_tests_pause_only_between_two_looks() -> None:
    """A new test waits for a condition with `until`. These look again by themselves, or are slow on purpose."""
    tests = ROOT / "tests"
    pauses = r"\bsleep\((?!0\))"
    own = Path(__file__)
    files = [
        file
        for file in TEST_MODULES
        if file != own and "torture" not in file.parts and re.search(pauses, file.read_text("utf-8"))
    ]
    assert [file.relative_to(tests).as_posix() for file in files] == [
        "clients/test_mirror.py",
        "clients/test_rolling_upgrade.py",
        "core/test_database_monitor.py",
        "core/test_outbound.py",
        "notifications/worker.py",
        "reliability/interrupt_installation.py",
        "reliability/proofs/test_change_log.py",
        "reliability/replica_set.py",
        "support/figures.py",
        "support/mail_servers.py",
        "support/s3_server.py",
        "support/service_process.py",
    ]


# Read the real day. All other tests have a fixed one (`wednesday`, tests/support/fixed_clock.py), so that no result depends on when
# they run: on which day of the week, or at midnight.
_OF_THE_REAL_DAY = {
    "clients/test_views.py": "other processes have their own clock",
    "contract/test_areas.py": "its company is created before the clock could be moved, and nothing is compared with the day",
    "contract/test_declared.py": "dates that a declaration may not name are compared with the real one",
    "core/test_log_lines.py": "a release is compared with the real day",
    "hostile/boundary_values.py": "its company is created before the clock could be moved",
    "mcp/call.py": "another process",
    "mcp/test_chat_confirmation.py": "the database says by its own clock when a token expires",
    "mcp/test_tool_access.py": "its company is created before the clock could be moved, and nothing is compared with the day",
    "people/test_availability.py": "the years that are accepted begin at the real day",
    "people/test_demo.py": "the demo company is written as of now",
    "reliability/test_assistant_calls.py": "other processes have their own clock",
    "support/mcp_client.py": "it follows the clock of its test",
    "support/schedules.py": "the years that are accepted begin at the real day",
    "training/test_client_programs.py": "it follows the clock of its test",
    "upgrades/reading.py": "another process, of an earlier release",
    "web/browser/test_proposals.py": "the browser has its own clock",
}


def test_tests_do_not_find_out_the_day_themselves() -> None:
    """A day that a test computes is wrong once a year, a week or a day: name `TODAY` of the fixed clock."""
    tests = ROOT / "tests"
    reads = r"datetime\.now\([^()]*\)\.date\(\)|\bdate\.today\("
    found = {
        file.relative_to(tests).as_posix()
        for file in TEST_MODULES
        if file != Path(__file__) and re.search(reads, file.read_text("utf-8"))
    }
    assert found == {*_OF_THE_REAL_DAY}


# Kills, freezes or restarts a process of the service or its database, or restores a backup.
_DISRUPTS = re.compile(
    r"SIGKILL|SIGSTOP|kill_at\b|\.kill\b|kill_database|\.freeze\(|\.disconnect\b|restore_backup\("
    r"|\"restore\"|mongods_of\(|\b(service|node|old|new|first|second)\.end\("
)
_DRILL = re.compile(r"require_whole|application: OwnApplication|replica_set_coach: CoachClient")
# What they end or restore is no service that goes on.
_WITHOUT_A_SERVICE = {
    "clients/test_mirror.py": "the program that reads from the service",
    "core/test_firing_alerts.py": "a service whose data are damaged on purpose",
    "core/test_malformed_uploads.py": "the process that reads pictures, of one that goes on",
    "integrations/test_updated_since.py": "a workout, from an archive of the client",
    "lifecycle/test_backup.py": "documents that no service has stored; proofs/test_restore_drill.py restores a service's",
    "lifecycle/test_backup_verification.py": "nothing: the restore is refused",
    "lifecycle/test_stored_backups.py": "documents that no service has stored; proofs/test_bucket_drill.py restores a service's",
    "people/webhooks/test_webhook_guide.py": "the receiver of the guide",
    "reliability/proofs/test_administration.py": "a service that is not started again: its company is erased",
    "reliability/interrupt_installation.py": "the script that installs",
    "reliability/proofs/test_interrupted_installation.py": "the script that installs",
    "reliability/test_database_faults.py": "a service that is not started again",
    "reliability/test_embedded.py": "a database without a service",
    "reliability/test_environment_script.py": "the script that installs",
    "reliability/test_full_disk.py": "starts that never succeed",
    "reliability/test_serving.py": "a service that is not started again",
    "unit/test_torture_report.py": "words of the report",
    "application/test_listen.py": "the command, which has no data of a service",
    "web/browser/train/test_session.py": "the browser",
}


def test_what_kills_or_restores_a_service_requires_that_it_is_whole_afterwards() -> None:
    """All of the drill of tests/support/drill.py, by itself or by a fixture of tests/reliability/conftest.py."""
    tests = ROOT / "tests"
    drilled, others = set[str](), set[str]()
    for file in TEST_MODULES:
        path, text = file.relative_to(tests).as_posix(), file.read_text("utf-8")
        if path.startswith("support/") or file == Path(__file__) or not _DISRUPTS.search(text):
            continue
        if file.name.startswith(("test_", "interrupt_")):
            (drilled if _DRILL.search(text) else others).add(path)
    assert others == _WITHOUT_A_SERVICE.keys()
    assert {"reliability/proofs/test_killed_changes.py", "reliability/test_lost_database.py"} < drilled
    assert {
        "clients/test_rolling_upgrade.py",
        "upgrades/test_recorded_data.py",
        "reliability/proofs/test_killed_service.py",
    } < drilled


@pytest.mark.parametrize(
    ("path", "name", "plain"),
    [
        ("core/http/routes.py", "Route", {"method", "path", "access", "handler", "tag", "status", "query", "body"}),
        ("web/pages.py", "Page", {"method", "path", "access", "handler", "template"}),
        ("core/database/context.py", "Services", {"db", "mail_sender"}),
    ],
)
def test_each_option_is_documented_where_it_is_declared(path: str, name: str, plain: set[str]) -> None:
    """Those in `plain`, errors and bodies need no words."""
    text = (PACKAGE / path).read_text("utf-8")
    declared = next(node for node in parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    lines = text.splitlines()
    options = [node for node in declared.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    silent = {ast.unparse(node.target) for node in options if not lines[node.lineno - 2].strip().startswith("# ")}
    assert {each for each in silent if not each.startswith("_")} - {"errors", "body_optional"} == plain


def test_routes_and_tools_do_not_catch_exceptions() -> None:
    for module in MODULES:
        if module.stem in ("routes", "tools"):
            assert not read_module(module).catches_exceptions, path_of(module)


def test_every_collection_is_indexed_by_company_or_declares_why_not() -> None:
    for name, collection in registry.items():
        by_company = [index for index in collection.indexes if index.fields[0] == "companyId"]
        assert by_company or collection.cross_company_reason, name
        for index in collection.indexes:
            expires = index.expire_after is not None
            assert index.fields[0] == "companyId" or collection.cross_company_reason or expires, f"{name}.{index.name}"


@pytest.mark.parametrize("collection", sorted(registry))
async def test_a_filter_cannot_name_another_company(coach: CoachClient, collection: str) -> None:
    """The filter of every read and write has the company of the caller."""
    other_company = {"companyId": ObjectId()}
    for company_filter in (
        registry[collection].read_filter,
        registry[collection].write_filter,
    ):
        assert company_filter(coach.ctx, {"name": "x"})["companyId"] is not None
        with pytest.raises(RuntimeError, match="must not contain companyId"):
            company_filter(coach.ctx, other_company)


def test_every_collection_of_a_client_is_indexed_by_client() -> None:
    """Erasing and exporting a client use the index."""
    assert [name for name, each in registry.items() if each.client_field and not each.by_client] == []

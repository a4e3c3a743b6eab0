"""The folder of `benchmarks.growth`: prepared once, and used again by later runs of the same size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import uvloop
from pymongo import MongoClient
from rich.progress import Progress

from benchmarks.growth_world import (
    GrownCompany,
    Stored,
    copy_demo,
    grow_companies,
    measure_collections,
    sizes_up_to,
)
from coaching_service import runtime
from coaching_service.core.auth import new_master_key
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.jobs.worker import run_due
from coaching_service.features import STEPS
from coaching_service.installation import migrations
from coaching_service.installation.embedded import running_mongod
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers.counters import COUNT_GROUPS
from coaching_service.settings import Settings

DATABASE = "bench"
VERSION = 2  # of the data that `growth_world` makes: older folders are refused
_MARKER = "growth.json"  # is written last
_PREPARING_GIGABYTES = 4.0


@dataclass(frozen=True)
class Prepared:
    """A running database with the companies, and what their documents take."""

    settings: Settings
    companies: list[GrownCompany]
    stored: list[Stored]


@contextmanager
def prepared_database(
    folder: Path, largest: int, companies: int, cache: float, progress: Progress
) -> Iterator[Prepared]:
    """Run a database on the folder, which is filled if it is missing or empty, with a cache of so many gigabytes.

    A filled one is migrated as by an update of the service. Raises UsageError if it has other data.
    """
    parameters = {"version": VERSION, "largest": largest, "companies": companies}
    marker = _read_marker(folder, parameters)
    with running_mongod(folder / "data") as uri:
        secret = new_master_key() if marker is None else str(marker["secret"])
        settings = Settings(mongodb_uri=uri, mongodb_database=DATABASE, secret_keys=(secret,), data_dir=folder)
        if marker is None:
            set_cache(uri, max(cache, _PREPARING_GIGABYTES))
            grown = uvloop.run(_fill(settings, largest, companies, progress))
            marker = {"parameters": parameters, "secret": secret, "companies": [asdict(each) for each in grown]}
            (folder / _MARKER).write_text(json.dumps(marker, indent=2) + "\n")
        set_cache(uri, cache)
        stored = uvloop.run(_open(settings))
        yield Prepared(settings, [GrownCompany(**each) for each in marker["companies"]], stored)


def _read_marker(folder: Path, parameters: dict[str, int]) -> dict[str, Any] | None:
    """What has been stored of a filled folder; None if it is missing or empty."""
    if not folder.exists() or not any(folder.iterdir()):
        return None
    if not (folder / _MARKER).exists():
        raise click.UsageError(f"{folder} has other or incomplete data: remove it, or choose another folder")
    marker: dict[str, Any] = json.loads((folder / _MARKER).read_text())
    if marker["parameters"] != parameters:
        stored, asked = (_describe(each) for each in (marker["parameters"], parameters))
        raise click.UsageError(f"{folder} has data of {stored}, not {asked}: remove it, or choose another folder")
    return marker


def _describe(parameters: dict[str, int]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in parameters.items())


async def _fill(settings: Settings, largest: int, companies: int, progress: Progress) -> list[GrownCompany]:
    """Store the small companies, and one of each size."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        await exercises.publish_shared(services)
        await copy_demo(services, companies, progress)
        return await grow_companies(services, list(sizes_up_to(largest)), progress)


async def _open(settings: Settings) -> list[Stored]:
    """Bring the database up to date, and return what it stores."""
    async with runtime.open_services(settings) as services:
        await _update(services)
        return await measure_collections(services)


async def _update(services: Services) -> None:
    await runtime.make_indexes(services)
    await migrations.migrate(services.db, services.vault)
    await run_due(services, {COUNT_GROUPS: STEPS[COUNT_GROUPS]}, at=now() + timedelta(days=2))  # no older code runs


def set_cache(uri: str, gigabytes: float) -> None:
    """Let the database use so much memory for its cache."""
    with MongoClient[dict[str, Any]](uri) as client:
        client.admin.command("setParameter", 1, wiredTigerEngineRuntimeConfig=f"cache_size={gigabytes * 1024:.0f}M")

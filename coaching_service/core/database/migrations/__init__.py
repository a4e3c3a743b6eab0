"""Changes of the stored shape of documents between releases: numbered steps, each applied once.

To add a step, declare it in the module of its release, such as `release_0_3`. A step must be idempotent and resumable:
it finds the documents that still have the old shape, changes only those, and can be run again after an interruption or
by two processes at the same time. It uses collection and field names as they are stored at that release, and no code of
the features, which changes later.
"""

from __future__ import annotations

from collections.abc import Sequence

import pymongo
import structlog
from pymongo.errors import DuplicateKeyError

from coaching_service import __version__
from coaching_service.core.auth import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.database.documents import now
from coaching_service.core.database.migrations import release_0_2, release_0_3
from coaching_service.core.database.migrations.release_0_3 import Step

COLLECTION = "migrations"
_DEADLINE_SECONDS = 24 * 3600.0  # of one operation of a step, instead of the deadline of requests

log = structlog.get_logger("coaching_service.migrations")


class NewerDatabase(Exception):
    """A later version has changed the stored documents; the message says what to do."""


STEPS = (*release_0_2.release.steps, *release_0_3.release.steps)


async def migrate(db: Database, vault: Vault, steps: Sequence[Step] = STEPS) -> list[str]:
    """Apply every pending step in order and return their names.

    A step is recorded once it is complete, so an interrupted run continues with the step it was at.
    """
    applied = []
    for step in await find_pending(db, steps):
        log.info("migration started", step=step.number, name=step.name)
        with pymongo.timeout(_DEADLINE_SECONDS):
            await step.apply(db, vault)
        await _record(db, step)
        log.info("migration finished", step=step.number, name=step.name)
        applied.append(step.name)
    return applied


async def find_pending(db: Database, steps: Sequence[Step] = STEPS) -> list[Step]:
    """Return the steps that have not been applied to the database, in order."""
    applied = {record["_id"] async for record in db[COLLECTION].find({}, {"_id": 1})}
    return sorted((step for step in steps if step.number not in applied), key=lambda step: step.number)


async def require_known(db: Database, steps: Sequence[Step] = STEPS, version: str = __version__) -> None:
    """Raise NewerDatabase if a later minor version has changed the documents in a way that `version` does not know.

    Unknown steps of the same minor version are accepted: its patch versions serve one database together.
    """
    known = [step.number for step in steps]
    unknown = await db[COLLECTION].find({"_id": {"$nin": known}}, sort=[("_id", 1)]).to_list(None)
    for record in unknown:
        release = record.get("release", "a later version")
        if "release" not in record or minor_version(release) > minor_version(version):
            raise NewerDatabase(
                f"The database was migrated to {release} (step {record['_id']} {record['name']}), and this is version "
                f"{version}: start {release} or later, or restore the backup made before the migration"
            )


def minor_version(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version: 0.2.1.dev0 is of the minor version (0, 2)."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


async def record_new_database(db: Database) -> None:
    """Record every step as applied if the database is empty: it has no documents of an older shape.

    Must be called before anything else is stored.
    """
    if not await db.list_collection_names():
        for step in STEPS:
            await _record(db, step)


async def _record(db: Database, step: Step) -> None:
    try:
        await db[COLLECTION].insert_one(
            {"_id": step.number, "name": step.name, "release": step.release, "appliedAt": now()}
        )
    except DuplicateKeyError:  # another process applied the step at the same time
        log.info("migration was applied by another process", step=step.number, name=step.name)

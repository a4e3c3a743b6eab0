"""Changes of the stored shape of documents between releases: numbered steps, each applied once.

To add a step, create a module `step_NNNN_name.py` with a function `apply(db, vault)` and list it in `STEPS`. A step
must be idempotent and resumable: it finds the documents that still have the old shape, changes only those, and can be
run again after an interruption or by two processes at the same time. It uses collection and field names as they are
stored at that release, and no code of the features, which changes later.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import getmodule

import pymongo
import structlog
from pymongo.errors import DuplicateKeyError

from coaching_service import __version__
from coaching_service.core.auth.secrets import Vault
from coaching_service.core.database.collections import now
from coaching_service.core.database.context import Database
from coaching_service.core.database.migrations import (
    step_0001_last_trained_date,
    step_0002_sealed_mail,
    step_0003_sessions,
    step_0004_exercise_media,
    step_0005_photo_content_types,
    step_0006_session_applications,
    step_0007_one_rep_max_estimates,
    step_0008_authors,
    step_0009_exercise_uploads,
    step_0010_change_log,
    step_0011_pending_forms,
    step_0012_attention,
    step_0013_file_totals,
    step_0014_first_access_index,
    step_0015_group_totals,
    step_0016_number_batches,
    step_0017_training_load,
    step_0018_clients_may_import,
    step_0019_key_outreach,
    step_0020_confirm_in_chat,
    step_0021_jobs_of_clients,
    step_0022_clients_may_move,
)

COLLECTION = "migrations"
_DEADLINE_SECONDS = 24 * 3600.0  # of one operation of a step, instead of the deadline of requests

log = structlog.get_logger("coaching_service.migrations")


class NewerDatabase(Exception):
    """A later version has changed the stored documents; the message says what to do."""


@dataclass(frozen=True)
class Step:
    """One change of stored documents. `number` decides the order and never changes.

    `release` is the minor version that brings it, such as "0.3". Another patch version of the same minor version may
    serve the changed documents, an earlier minor version may not: see docs/upgrading.md.
    """

    number: int
    name: str
    apply: Callable[[Database, Vault], Awaitable[None]]
    release: str

    @property
    def description(self) -> str:
        """What the stored documents are like afterwards: the first paragraph of the module's docstring, in one line."""
        documentation = getmodule(self.apply).__doc__ or ""
        return " ".join(documentation.strip().split("\n\n")[0].split())


STEPS = (
    Step(1, "last_trained_date", step_0001_last_trained_date.apply, "0.2"),
    Step(2, "sealed_mail", step_0002_sealed_mail.apply, "0.2"),
    Step(3, "sessions", step_0003_sessions.apply, "0.2"),
    Step(4, "exercise_media", step_0004_exercise_media.apply, "0.2"),
    Step(5, "photo_content_types", step_0005_photo_content_types.apply, "0.2"),
    Step(6, "session_applications", step_0006_session_applications.apply, "0.2"),
    Step(7, "one_rep_max_estimates", step_0007_one_rep_max_estimates.apply, "0.2"),
    Step(8, "authors", step_0008_authors.apply, "0.2"),
    Step(9, "exercise_uploads", step_0009_exercise_uploads.apply, "0.2"),
    Step(10, "change_log", step_0010_change_log.apply, "0.2"),
    Step(11, "pending_forms", step_0011_pending_forms.apply, "0.2"),
    Step(12, "attention", step_0012_attention.apply, "0.2"),
    Step(13, "file_totals", step_0013_file_totals.apply, "0.2"),
    Step(14, "first_access_index", step_0014_first_access_index.apply, "0.2"),
    Step(15, "group_totals", step_0015_group_totals.apply, "0.2"),
    # Not for a patch version: the code before it does not store the batches, and names the indexes that it drops.
    Step(16, "number_batches", step_0016_number_batches.apply, "0.2"),
    # Not for a patch version of 0.2: its code does not know the new types of records.
    Step(17, "training_load", step_0017_training_load.apply, "0.3"),
    Step(18, "clients_may_import", step_0018_clients_may_import.apply, "0.3"),
    Step(19, "key_outreach", step_0019_key_outreach.apply, "0.3"),
    Step(20, "confirm_in_chat", step_0020_confirm_in_chat.apply, "0.3"),
    Step(21, "jobs_of_clients", step_0021_jobs_of_clients.apply, "0.3"),
    Step(22, "clients_may_move", step_0022_clients_may_move.apply, "0.3"),
)


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

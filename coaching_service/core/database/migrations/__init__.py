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
)

COLLECTION = "migrations"
_DEADLINE_SECONDS = 24 * 3600.0  # of one operation of a step, instead of that of requests

log = structlog.get_logger("coaching_service.migrations")


@dataclass(frozen=True)
class Step:
    """One change of stored documents. `number` decides the order and never changes."""

    number: int
    name: str
    apply: Callable[[Database, Vault], Awaitable[None]]

    @property
    def description(self) -> str:
        """What the stored documents are like afterwards: the first paragraph of the module's docstring, in one line."""
        documentation = getmodule(self.apply).__doc__ or ""
        return " ".join(documentation.strip().split("\n\n")[0].split())


STEPS = (
    Step(1, "last_trained_date", step_0001_last_trained_date.apply),
    Step(2, "sealed_mail", step_0002_sealed_mail.apply),
    Step(3, "sessions", step_0003_sessions.apply),
    Step(4, "exercise_media", step_0004_exercise_media.apply),
    Step(5, "photo_content_types", step_0005_photo_content_types.apply),
    Step(6, "session_applications", step_0006_session_applications.apply),
    Step(7, "one_rep_max_estimates", step_0007_one_rep_max_estimates.apply),
    Step(8, "authors", step_0008_authors.apply),
    Step(9, "exercise_uploads", step_0009_exercise_uploads.apply),
    Step(10, "change_log", step_0010_change_log.apply),
    Step(11, "pending_forms", step_0011_pending_forms.apply),
    Step(12, "attention", step_0012_attention.apply),
    Step(13, "file_totals", step_0013_file_totals.apply),
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
    """The steps that have not been applied to the database, in order."""
    applied = {record["_id"] async for record in db[COLLECTION].find({}, {"_id": 1})}
    return sorted((step for step in steps if step.number not in applied), key=lambda step: step.number)


async def record_new_database(db: Database, steps: Sequence[Step] = STEPS) -> None:
    """Record every step as applied if the database is empty: it has no documents of an older shape.

    Must be called before anything else is stored.
    """
    if not await db.list_collection_names():
        for step in steps:
            await _record(db, step)


async def _record(db: Database, step: Step) -> None:
    try:
        await db[COLLECTION].insert_one({"_id": step.number, "name": step.name, "appliedAt": now()})
    except DuplicateKeyError:  # another process applied the step at the same time
        log.info("migration was applied by another process", step=step.number, name=step.name)

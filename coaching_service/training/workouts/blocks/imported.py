"""Sessions that were imported from files: stored without an event of each, found again, and removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.recording import ChangeRecorder, DocumentChange
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.log_models import LoggedBlock
from coaching_service.training.workouts.blocks.logs import complete_logged_blocks, new_logged_block
from coaching_service.training.workouts.blocks.models import (
    BlockContent,
    BlockPlan,
    BlockSource,
    ImportedSession,
    KnownSession,
    StoredBlock,
)
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items.input_models import ItemLog
from coaching_service.training.workouts.sets.models import CustomerSet

_BY_IMPORT = store.blocks.index_name("source.importId", "_id")


class DoneExercise(TypedDict):
    """What was done of an exercise in a session."""

    exerciseId: ObjectId
    supersetId: str | None
    comment: str | None
    customerSets: list[CustomerSet]


class DoneSession(TypedDict):
    """A session to store: `completedAt` is the time (UTC) at which it ended, `fingerprint` what finds it again."""

    name: str
    date: str
    startTime: str | None
    durationMinutes: float | None
    comment: str | None
    exercises: list[DoneExercise]
    completedAt: datetime
    fingerprint: str


async def add_sessions(
    ctx: Context, customer_id: ObjectId, source: BlockSource, sessions: Sequence[DoneSession]
) -> list[StoredBlock]:
    """Store done sessions of a client whose access has been checked, in the caller's transaction.

    Neither the change log nor events have them: the caller reports them together.
    """
    calendar = ClientCalendar(customer_id)
    new = [_new_block(calendar, source, session) for session in sessions]
    blocks = await complete_logged_blocks(ctx, calendar, new)
    return await store.blocks.insert_many(ctx, store.with_positions(blocks, 0), recorded=False)


async def list_new(ctx: Context, import_id: ObjectId) -> list[DocumentChange]:
    """Return the sessions that an import has stored in the caller's transaction, as a change of each would be."""
    recorder = ChangeRecorder()
    where = {"source.importId": import_id}
    recorder.add_created(store.blocks, await store.blocks.find(ctx, where, sort=("_id",), hint=_BY_IMPORT))
    return list(recorder.documents.values())


async def find_done_on(ctx: Context, customer_id: ObjectId, dates: Sequence[str]) -> list[KnownSession]:
    """Return the blocks with logged sets of a client on some dates."""
    where: Filter = {"customerId": customer_id, "date": {"$in": list(dates)}, "items.customerSets.0": {"$exists": True}}
    fields = ("date", "name", "startTime", "fingerprint", "items.exerciseId", "items.type", "items.customerSets")
    return cast("list[KnownSession]", await store.blocks.find(ctx, where, fields=fields, hint=store.BY_DATE))


async def find_imported(ctx: Context, import_id: ObjectId, after: ObjectId | None, limit: int) -> list[ImportedSession]:
    """Return at most `limit` blocks of an import after an identifier, in order."""
    where: Filter = {"source.importId": import_id} | ({} if after is None else {"_id": {"$gt": after}})
    fields = ("customerId", "date", "version", "items.type", "items.customerSets.index")
    listed = await store.blocks.find(ctx, where, sort=("_id",), limit=limit, fields=fields, hint=_BY_IMPORT)
    return cast("list[ImportedSession]", listed)


async def remove_unchanged(ctx: Context, import_id: ObjectId, ids: Sequence[ObjectId]) -> int:
    """Delete blocks of an import that have not changed since, without a record of each; returns how many."""
    where: Filter = {"source.importId": import_id, "_id": {"$in": list(ids)}, "version": 0}
    return await store.blocks.delete_many(ctx, where, recorded=False)


def _new_block(calendar: ClientCalendar, source: BlockSource, session: DoneSession) -> BlockContent:
    plan: BlockPlan = {
        "name": session["name"],
        "date": session["date"],
        "startTime": session["startTime"],
        "isRest": False,
        "items": [
            {
                "type": "EXERCISE",
                "exerciseId": each["exerciseId"],
                "exerciseSets": [],
                "exerciseInstructions": None,
                "supersetId": each["supersetId"],
            }
            for each in session["exercises"]
        ],
    }
    logs: list[ItemLog | None] = [
        {"isCompleted": True, "comment": each["comment"], "customerSets": each["customerSets"]}
        for each in session["exercises"]
    ]
    log: LoggedBlock = {
        "plan": plan,
        "logs": logs,
        "loggedAt": session["completedAt"],
        "durationMinutes": session["durationMinutes"],
        "sessionRpe": None,
        "comment": session["comment"],
    }
    return {**new_logged_block(calendar, log), "source": source, "fingerprint": session["fingerprint"]}

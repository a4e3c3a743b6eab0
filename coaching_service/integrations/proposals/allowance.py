"""What an assistant with `confirmInChat`, or a key, may confirm in any ten minutes: 5 messages and 20 other calls.

The document of a key or grant is written in the transaction of the call: of calls at the same time that together are
too much, one fails.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported

MAX_MESSAGES, MAX_OTHERS = 5, 20
WINDOW = timedelta(minutes=10)


class ChatConfirmation(TypedDict):
    """A call that an assistant has confirmed: when, and how many people it has written to."""

    at: datetime
    messages: int


class StoredAllowance(Stored):
    """What was confirmed with the key or grant `_id` in the last ten minutes."""

    confirmed: list[ChatConfirmation]


_allowances = Documents[StoredAllowance](
    "chatConfirmations",
    (Index(()),),
    secret=True,
    expire=("updatedAt", int(WINDOW.total_seconds()) + 60),
    transfer=NotExported("what assistants have confirmed in the last ten minutes"),
    incidental=True,
)


async def has_room(ctx: Context, messages: int) -> bool:
    """Return whether the calling assistant may confirm one more call, which writes to so many people."""
    return _has_room(await _list_recent(ctx), messages)


async def use(tx: Context, messages: int) -> bool:
    """Count a call that the calling assistant confirms, in its transaction; returns whether it may."""
    recent = await _list_recent(tx)
    if not _has_room(recent, messages):
        return False
    confirmed: list[ChatConfirmation] = [*recent, {"at": now(), "messages": messages}]
    await _allowances.upsert(tx, {"_id": tx.caller.credential_id}, {"confirmed": confirmed})
    return True


async def _list_recent(ctx: Context) -> list[ChatConfirmation]:
    stored = await _allowances.find_one(ctx, {"_id": ctx.caller.credential_id})
    since = now() - WINDOW
    return [] if stored is None else [each for each in stored["confirmed"] if each["at"] > since]


def _has_room(recent: list[ChatConfirmation], messages: int) -> bool:
    if messages:
        return sum(each["messages"] for each in recent) + messages <= MAX_MESSAGES
    return sum(1 for each in recent if not each["messages"]) < MAX_OTHERS

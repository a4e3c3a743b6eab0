"""What was done in a workout block, as it is sent."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.training.workouts.blocks.models import BlockPlan
from coaching_service.training.workouts.blocks.session_fields import SessionFields
from coaching_service.training.workouts.items.input_models import ItemLog


class BlockLog(SessionFields):
    """What a client reports about a session; `version` is the version of the block it is based on.

    Without `feeling` the stored one stays.
    """

    clientTexts: NotRequired[list[NameOrId]]
    version: NotRequired[int | None]


class LogTexts(TypedDict):
    """The comment of a session, and the names of the texts that the client wrote: of the session, and of each item."""

    comment: str | None
    clientTexts: list[NameOrId]
    ofItems: dict[ObjectId, list[str]]


class LoggedBlock(SessionFields):
    """A block to add with what was done in it: a log (or null) for each of its items, and of the session.

    `loggedAt` is the time of the logs, in UTC.
    """

    plan: BlockPlan
    logs: list[ItemLog | None]
    loggedAt: datetime
    clientTexts: NotRequired[list[NameOrId]]

"""What the sequencer stores and reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from coaching_service.core.database.leases import Lease
from coaching_service.core.ids import ObjectId

# A place in a change stream: MongoDB's resume token.
Position = Mapping[str, Any]
# Where a change stream begins, as the driver takes it: `resume_after` or `start_at_operation_time`.
Start = Mapping[str, Any]


class SequencerState(Lease):
    """Which process numbers the changes, its position in the change stream, and the latest time numbered.

    `createdUntil` is the latest `createdAt` of the changes with a number. Those before it have one too, but for the
    duration of a transaction; absent: not known.
    """

    position: NotRequired[Position | None]
    createdUntil: NotRequired[datetime]


class ChangeCounter(TypedDict):
    """The last number used within a company, whose identifier is `_id`."""

    _id: ObjectId
    companyId: ObjectId
    lastSeq: int


class NewChange(TypedDict):
    """What the sequencer needs of a change. Fields that may be missing are missing only in a damaged one."""

    _id: ObjectId
    companyId: ObjectId
    createdAt: NotRequired[datetime]
    eventCount: NotRequired[int]


class NumberedId(TypedDict):
    """A change and the number of its last event."""

    _id: ObjectId
    lastSeq: int


class NumberBatch(TypedDict):
    """The changes of a company that were numbered at one time, in order; erased ones stay in it."""

    _id: ObjectId
    companyId: ObjectId
    first: int
    last: int
    changes: list[NumberedId]
    numberedAt: datetime


class NumberedChange(TypedDict):
    """The numbers of the first and the last event of a change, within its company."""

    _id: ObjectId
    companyId: ObjectId
    createdAt: datetime
    seq: int
    lastSeq: int

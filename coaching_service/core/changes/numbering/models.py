"""What the sequencer stores and reads."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from coaching_service.core.ids import ObjectId


class ChangeCounter(TypedDict):
    """The last number used within a company, whose identifier is `_id`."""

    _id: ObjectId
    companyId: ObjectId
    lastSeq: int


class NewChange(TypedDict):
    """What the sequencer needs of a change. `eventCount` is missing only in a damaged one."""

    _id: ObjectId
    companyId: ObjectId
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

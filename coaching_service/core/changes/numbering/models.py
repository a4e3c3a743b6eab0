"""What the sequencer stores and reads."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from coaching_service.core.ids import ObjectId

# A place in a change stream: MongoDB's resume token.
Position = Mapping[str, Any]
# Where a change stream begins, as the driver takes it: `resume_after` or `start_at_operation_time`.
Start = Mapping[str, Any]


class SequencerState(TypedDict):
    """Which process numbers the changes, until when, and its position in the change stream."""

    _id: str
    holder: str
    expiresAt: datetime
    position: Position | None


class ChangeCounter(TypedDict):
    """The last number used within a company, whose identifier is `_id`."""

    _id: ObjectId
    companyId: ObjectId
    lastSeq: int


class NewChange(TypedDict):
    """What the sequencer needs of a change."""

    _id: ObjectId
    companyId: ObjectId
    eventCount: int


class NumberedChange(TypedDict):
    """The numbers of the first and the last event of a change, within its company."""

    _id: ObjectId
    companyId: ObjectId
    seq: int
    lastSeq: int

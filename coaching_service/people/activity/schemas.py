"""What the activity feed reads and answers."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Choice, DateTime, Identifier, Input, Output

TYPES = (
    "workout_completed",
    "item_logged",
    "form_submitted",
    "metric_recorded",
    "photo_added",
    "plan_uploaded",
    "personal_record",
    "note_added",
    "program_assigned",
)


class FeedQuery(Input):
    """`page` from 1 and `limit` from 1 to 100, both required."""

    page = QueryInteger(minimum=1, required=True)
    limit = QueryInteger(minimum=1, maximum=100, required=True)


class ActivityEvent(Output):
    """Something that happened with a client; `data` says to what."""

    _id = Identifier()
    type = Choice(*TYPES)
    date = DateTime()
    data = fields.Dict(metadata={"description": "What the event is about: identifiers, names, the session's `day`."})

"""What the progress-photo operations read and answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields

from coaching_service.kernel.validation import Answer, Choice, Day, Identifier, Input, Moment


class DayOrMoment(Day):
    """A date, or a moment in ISO 8601 of which the date is taken as written."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if isinstance(value, str) and "T" in value:
            try:
                datetime.fromisoformat(value)
            except ValueError:
                raise ValidationError("must be a date in the form YYYY-MM-DD, or a moment in ISO 8601") from None
            value = value.partition("T")[0]
        return super()._deserialize(value, attr, data, **kwargs)


def _side() -> Choice:
    return Choice("1", "2", "3", required=True, metadata={"description": '"1" front, "2" back, "3" side.'})


class NewPhoto(Input):
    """Which side it shows, and when it was taken."""

    createdAt = DayOrMoment(required=True)
    imageSideIndex = _side()


class OtherPhoto(Input):
    """Which side it shows."""

    imageSideIndex = _side()


class Sides(Answer):
    """The photos of a date; null where there is none. Links end after two hours."""

    frontKey = fields.String(allow_none=True)
    frontUrl = fields.Url(allow_none=True)
    frontThumbnailUrl = fields.Url(allow_none=True)
    backKey = fields.String(allow_none=True)
    backUrl = fields.Url(allow_none=True)
    backThumbnailUrl = fields.Url(allow_none=True)
    sideKey = fields.String(allow_none=True)
    sideUrl = fields.Url(allow_none=True)
    sideThumbnailUrl = fields.Url(allow_none=True)


class ProgressPhoto(Answer):
    """A client on a date."""

    _id = Identifier()
    customerId = Identifier()
    createdAt = Day(metadata={"description": "The date the photos were taken on."})
    photos = fields.Nested(Sides)
    updatedAt = Moment()
    version = fields.Integer()

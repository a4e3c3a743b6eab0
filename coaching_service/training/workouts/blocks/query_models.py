"""What requests for workout blocks ask for."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, TypedDict

from coaching_service.core.external_identity import ExternalIdFilter
from coaching_service.core.fields import Description
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.query import Period


class BlockFilters(UpdatedSince, ExternalIdFilter):
    """The filters of a list of blocks, apart from the days."""


class CalendarQuery(BlockFilters, Period):
    """The blocks of a calendar to read."""


class WorkoutBlockQuery(TypedDict):
    """What to add to a workout block."""

    include: NotRequired[
        Annotated[
            Literal["lastTime"],
            Description(
                "`lastTime`: adds to each exercise what the client did in its latest session before the date of the "
                "block."
            ),
        ]
    ]

"""Groups with a program as they are sent, stored and read."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Default, Description, Label
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Boolean, CalendarDate, Choice, Message, Text

NEXT_MONDAY, JOIN_DAY = "nextMonday", "joinDay"
Leaving = Literal["keep", "removeUpcoming"]


class GroupName(Text):
    """The name of a group of clients."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=100, metadata={"pattern": r"^.{1,100}$", "example": "Morning"}, **options)


class StartOn(Text):
    """`nextMonday`, `joinDay` or a date."""

    default_error_messages = {
        "choice": Message(f"must be {NEXT_MONDAY}, {JOIN_DAY} or a date (YYYY-MM-DD)", "INVALID_CHOICE")
    }

    def __init__(self, **options: Any) -> None:
        pattern = rf"^({NEXT_MONDAY}|{JOIN_DAY}|\d{{4}}-\d{{2}}-\d{{2}})$"
        super().__init__(max_length=10, metadata={"pattern": pattern} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text: str = super()._deserialize(value, attr, data, **kwargs)
        if text in (NEXT_MONDAY, JOIN_DAY):
            return text
        if not text[:1].isdigit():
            raise self.make_error("choice")
        day: str = CalendarDate().deserialize(text)
        return day


class _GroupProgram(TypedDict):
    """The program of a group, and when it begins for a client who joins."""

    programId: Annotated[ObjectId, Label("Program")]
    startOn: Annotated[
        str,
        StartOn(),
        Description(
            "When the program begins for a client who joins: on the Monday after, on the same day, or on a date. What "
            "is before the day on which the client joins is left out."
        ),
        Label("Begins"),
    ]
    leave: Annotated[
        Leaving,
        Choice("keep", "removeUpcoming"),
        Default("keep"),
        Description(
            "What happens to the workouts of the program that are still to come when a client leaves the group: with "
            "`removeUpcoming`, those with nothing done are removed, and the program is ended for the client."
        ),
        Label("When a client leaves"),
    ]


class GroupProgramChange(_GroupProgram):
    """The program that clients get when they join a group."""

    existing: Annotated[
        bool,
        Boolean(),
        Default(False),
        Description("Whether clients who are in the group now get it too, as if they joined now."),
    ]


class GroupProgramContent(_GroupProgram):
    """A group with its program."""

    groupName: Annotated[str, GroupName(), Description("The name of the group.")]


class StoredGroupProgram(GroupProgramContent, Stored):
    """A stored group program."""


class GroupProgram(GroupProgramContent):
    """The program that clients get when they join a group."""

    programName: Annotated[str, Description("The name of the program.")]


class Enrolment(TypedDict):
    """How many clients got the program."""

    enrolled: Annotated[int, Description("The number of clients in the group who got the program now.")]

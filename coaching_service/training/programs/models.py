"""Programs as they are sent, stored and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core import fields as core_fields
from coaching_service.core import validation
from coaching_service.core.database.declared import Stored
from coaching_service.core.events import DomainEvent
from coaching_service.core.external_identity import Identity, IdentityInput, StoredIdentity
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import RecordQuery
from coaching_service.core.query import QueryInteger
from coaching_service.training.workouts.blocks import models as block_models

LAST_DAY = 3_660


class ProgramBlockCopy(TypedDict):
    """The day of a copy."""

    day: Annotated[
        int, validation.Integer(minimum=1, maximum=LAST_DAY), core_fields.Description(argument="The day, from 1.")
    ]


class ProgramBlockFields(block_models.BlockName, ProgramBlockCopy, block_models.BlockSettings):
    """The fields of a workout block of a program."""


class NewProgramBlock(ProgramBlockFields, block_models.BlockItems):
    """A workout block with items for a program, created all or nothing."""


class _Details(TypedDict):
    name: Annotated[str, validation.Text()]
    description: Annotated[
        str | None,
        validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True),
        core_fields.Description(argument="What it is for."),
    ]
    tags: Annotated[list[str], validation.StringList(), core_fields.Default(list)]


class ProgramInput(_Details, IdentityInput):
    """A program to create."""


class _Program(_Details):
    isArchived: bool


class _ProgramFields(_Program, StoredIdentity):
    pass


class StoredProgram(_ProgramFields, Stored):
    """A program in the database; its blocks are stored by training/workouts."""


class _Days(TypedDict):
    numberOfDaysWithWorkouts: Annotated[
        int, core_fields.Description("The number of days with a block that is not rest and has an item.")
    ]


class Program(_Program, _Days, Identity, Stored):
    """Workout blocks by day."""


class ProgramQuery(RecordQuery):
    """The filters of the program list."""

    archived: bool
    keywords: NotRequired[Annotated[str, core_fields.Description("Every word must occur in name, description or tag.")]]


class ProgramDayRange(block_models.BlockFilters):
    """`startDay` and `endDay`, both included; days count from 1, a start of 0 is accepted."""

    startDay: Annotated[int, QueryInteger(minimum=0)]
    endDay: Annotated[int, QueryInteger(minimum=0)]


class VersionReference(TypedDict):
    """The version that a change without other content is based on."""

    version: NotRequired[Annotated[int, validation.Version()]]


# The fields of a program to change, and the version the change is based on; those of a stored program to set.
ProgramChange: TypeAlias = core_fields.Change[ProgramInput]
ProgramFields: TypeAlias = core_fields.Partial[_ProgramFields]

# A program as assistants read it in a list.
ProgramName: TypeAlias = core_fields.Part[StoredProgram, Literal["_id", "name"]]


@dataclass(frozen=True)
class DatedProgram:
    """A program whose blocks have dates, day 1 on `start`, or on `weekdays` (1 Monday to 7 Sunday) from then on.

    `days` is the number of days from the first to the last block in the program itself.
    """

    program: ProgramName
    start: str
    blocks: list[block_models.BlockPlan]
    weekdays: list[int] | None = None
    days: int = 0


# --- Domain events about programs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramDeleted(DomainEvent):
    """A program was deleted; what was assigned from it remains."""

    program_id: ObjectId

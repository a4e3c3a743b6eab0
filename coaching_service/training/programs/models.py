"""Programs as they are sent, stored and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.external_identity import Identity, IdentityInput, StoredIdentity
from coaching_service.core.fields import Part
from coaching_service.core.validation import Integer
from coaching_service.training.workouts.blocks.models import BlockItems, BlockName, BlockPlan, BlockSettings

LAST_DAY = 3_660


class _ProgramDay(TypedDict):
    day: Annotated[int, Integer(minimum=1, maximum=LAST_DAY)]


class ProgramBlockFields(BlockName, _ProgramDay, BlockSettings):
    """The fields of a workout block of a program."""


class NewProgramBlock(ProgramBlockFields, BlockItems):
    """A workout block with items for a program, created all or nothing."""


class ProgramInput(IdentityInput):
    """A program to create."""

    name: str
    description: str | None
    tags: list[str]


class ProgramFields(StoredIdentity, total=False):
    """The fields of a stored program to set."""

    name: str
    description: str | None
    tags: list[str]
    isArchived: bool


class ProgramChange(IdentityInput, total=False):
    """The fields of a program to change, and the version the change is based on."""

    name: str
    description: str | None
    tags: list[str]
    version: int | None


class _Program(Stored):
    name: str
    description: str | None
    tags: list[str]
    isArchived: bool


class StoredProgram(_Program, StoredIdentity):
    """A program in the database; its blocks are stored by training/workouts."""


class Program(_Program, Identity):
    """A program as it is read, with the number of days that have a workout."""

    numberOfDaysWithWorkouts: int


# A program as assistants read it in a list.
ProgramName: TypeAlias = Part[StoredProgram, Literal["_id", "name"]]


@dataclass(frozen=True)
class DatedProgram:
    """A program whose blocks have dates, day 1 on `start`, or on `weekdays` (1 Monday to 7 Sunday) from then on."""

    program: ProgramName
    start: str
    blocks: list[BlockPlan]
    weekdays: list[int] | None = None

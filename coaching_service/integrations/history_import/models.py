"""What an import of training history is asked for, has stored, and returns."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_files.models import Format
from coaching_service.integrations.history_files.rosters import Column
from coaching_service.integrations.history_files.sessions import Session
from coaching_service.integrations.history_files.set_rows import Question
from coaching_service.integrations.history_files.survey import Survey
from coaching_service.integrations.history_files.tables import UnreadableTable
from coaching_service.integrations.history_files.values import DateOrder
from coaching_service.library.exercises.name_models import ExerciseMatch

__all__ = ["Session", "Survey", "UnreadableTable"]

ImportFormat: TypeAlias = Format | Literal["customers"]
# An exercise or a client of the company, or what becomes of a name that stands for none.
Decision: TypeAlias = ObjectId | Literal["create", "skip"]


class NameAnswer(TypedDict):
    """What a name in a file stands for."""

    name: str
    answer: Decision


class ColumnAnswer(TypedDict):
    """What a column has: a field of sets or of clients; empty: it is not read."""

    heading: str
    field: str | Column


class ImportAnswers(TypedDict):
    """What the caller says about a file; None and empty: the file decides, or the import asks.

    `customerId` is the client of a file that has no column of clients. `names` are of exercises.
    """

    format: ImportFormat | None
    customerId: ObjectId | None
    loadUnit: Literal["kg", "lb"] | None
    distanceUnit: Literal["km", "mi", "m", "yd"] | None
    dateOrder: DateOrder | None
    names: list[NameAnswer]
    customers: list[NameAnswer]
    columns: list[ColumnAnswer]


class NameInFile(TypedDict):
    """A name of an exercise in a file: how many sets it has, the exercise that it means, and the nearest others."""

    name: str
    sets: int
    match: ExerciseMatch | None
    alternatives: list[ExerciseMatch]


class CreatedCounts(TypedDict):
    """How many records an import created, or with `dryRun` would create."""

    customers: int
    sessions: int
    sets: int
    exercises: int


HistoryResult = TypedDict(
    "HistoryResult",
    {
        "dryRun": bool,
        "format": ImportFormat,
        "rows": int,
        "imported": int,
        "reported": int,
        "created": CreatedCounts,
        "from": str | None,
        "to": str | None,
        "questions": list[Question],
        "names": list[NameInFile],
    },
)


class HistoryWork(TypedDict):
    """What the next step of an import of history needs; `entry` and `record` are its position.

    `fileId` is None once the import has ended, and the file is deleted.
    """

    fileId: ObjectId | None
    fileName: str
    contentType: str
    isDryRun: bool
    answers: ImportAnswers
    entry: int
    record: int
    result: NotRequired[HistoryResult]

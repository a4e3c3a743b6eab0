"""What an import of training history is asked for, keeps between its steps, and returns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_files.models import Format, Question
from coaching_service.integrations.history_files.rosters import Column
from coaching_service.integrations.history_files.values import DateOrder
from coaching_service.library.imported_names.models import NameAnswer, NameInFile
from coaching_service.people.account.models import LoadUnit

# The formats in which clients import their own history.
OWN_FORMATS = ("hevy", "strong", "fitnotes", "stronglifts", "gravl", "sets")
ImportFormat: TypeAlias = Format | Literal["customers"]
DistanceUnit: TypeAlias = Literal["km", "mi", "m", "yd"]


class _FileAnswers(TypedDict):
    """What the caller says about all of a file; None: the file decides, or the import asks.

    `customerId` is the client of a file that has no column of clients.
    """

    format: ImportFormat | None
    customerId: ObjectId | None
    loadUnit: LoadUnit | None
    distanceUnit: DistanceUnit | None
    dateOrder: DateOrder | None


class ImportAnswers(_FileAnswers):
    """What the caller says about a file; without an answer the file decides, or the import asks.

    `names` are of exercises, `customers` of clients in the file; `columns` are the fields of headings, empty for a
    column that is not read.
    """

    names: Mapping[str, NameAnswer]
    customers: Mapping[str, NameAnswer]
    columns: Mapping[str, str | Column]


NO_ANSWERS: ImportAnswers = {
    "format": None,
    "customerId": None,
    "loadUnit": None,
    "distanceUnit": None,
    "dateOrder": None,
    "names": {},
    "customers": {},
    "columns": {},
}


class StoredAnswer(TypedDict):
    """What a name in a file stands for; None: what has it is left out. Names are no keys of stored documents."""

    name: str
    answer: NameAnswer | None


class StoredColumn(TypedDict):
    """The field of a heading."""

    heading: str
    field: str


class StoredAnswers(_FileAnswers):
    """The answers about a file as a job keeps them."""

    names: list[StoredAnswer]
    customers: list[StoredAnswer]
    columns: list[StoredColumn]


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
        "format": ImportFormat | None,
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


ImportedPeriod = TypedDict(
    "ImportedPeriod",
    {"customerId": ObjectId, "sessions": int, "sets": int, "from": str, "to": str, "format": NotRequired[str]},
)


class HistoryPlan(TypedDict):
    """What an import of history has decided at its start, and where it is.

    `exercises` and `customers` are what names in the file stand for (`create`: a dry run would create it). `current` is
    what was stored for the client whose sessions are being stored, and has no event yet. `problems` counts those of
    rows, also those that the job does not list.
    """

    exercises: list[StoredAnswer]
    customers: list[StoredAnswer]
    dateOrder: DateOrder | None
    current: ImportedPeriod | None
    result: HistoryResult
    problems: NotRequired[int]


class RemovedCounts(TypedDict):
    """How many records an undo removed."""

    customers: int
    sessions: int
    exercises: int


class KeptDocument(TypedDict):
    """A record that stays, and why."""

    documentId: ObjectId
    code: str
    message: str


class UndoResult(TypedDict):
    """What the undo of an import removed (`ok` records), and the first of those that stay."""

    ok: int
    removed: RemovedCounts
    failed: list[KeptDocument]


class UndoWork(TypedDict):
    """What the next step of an undo needs; the job of the import may be gone by then.

    `entry` is the kind of records that it goes through, `record` how many of them it has seen, and `last` the last one.
    `clients` are those of whom sessions were removed.
    """

    importId: ObjectId
    importEndedAt: datetime
    isOfClients: bool
    entry: int
    record: int
    last: ObjectId | None
    clients: list[ImportedPeriod]
    result: UndoResult

"""Responses about background jobs."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Output
from coaching_service.integrations.history_files.models import ImportQuestion
from coaching_service.library.imported_names.models import NameInFile
from coaching_service.lifecycle.customer_bulk.schemas import ClientChange

_OPTIONAL = {"optional": True}
_IDENTIFIER = {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"}
_FAILURE = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "customerId": _IDENTIFIER,
        "documentId": _IDENTIFIER,
        "code": {"type": "string"},
        "message": {"type": "string"},
    },
}


class BackgroundJobError(Output):
    """A problem that a job has found."""

    entry = fields.String(
        metadata={"description": "Where: an entry of the archive with the number of its line, or a line of the CSV."}
    )
    line = fields.Integer(
        allow_none=True, metadata={"description": "Of a table: the line of the row; null: the whole file.", **_OPTIONAL}
    )
    field = fields.String(allow_none=True, metadata={"description": "The path of the field; null: the whole record."})
    code = fields.String(
        metadata={"description": "A stable code, such as `EXTERNAL_ID_TAKEN`. Absent in old jobs.", "optional": True}
    )
    message = fields.String(metadata={"description": "What is wrong, as the continuation of the field's name."})
    _id = Identifier(
        metadata={
            "description": "Of a CSV file. With `EXTERNAL_ID_TAKEN`: the client who has the identifier. With "
            "`ALREADY_EXISTS`: the client with the same e-mail address or full name.",
            **_OPTIONAL,
        }
    )


class JobResult(Output):
    """What an import stored, a conversion of loads converted, or a bulk operation or an undo changed."""

    dryRun = fields.Boolean(metadata={"description": "Whether nothing was stored.", **_OPTIONAL})
    imported = fields.Raw(
        metadata={
            "description": "Of an export or clients: number of records by collection. Of history: number of rows that "
            "were imported.",
            "anyOf": [{"type": "integer"}, {"type": "object", "additionalProperties": {"type": "integer"}}],
            **_OPTIONAL,
        }
    )
    failed = fields.Raw(
        metadata={
            "description": "Of an import: number of records that were left out, each with an error. Of a bulk "
            "operation or an undo: the clients who were not changed, or the documents that were not restored.",
            "anyOf": [{"type": "integer"}, {"type": "array", "items": _FAILURE}],
            **_OPTIONAL,
        }
    )
    requested = fields.Integer(metadata={"description": "Of a bulk operation: number of clients.", **_OPTIONAL})
    ok = fields.Integer(
        metadata={"description": "Number of clients that were changed, or documents that were restored.", **_OPTIONAL}
    )
    results = fields.List(
        fields.Nested(ClientChange),
        metadata={"description": "Of an operation on schedules: what changed of each client.", **_OPTIONAL},
    )
    batchId = Identifier(metadata={"description": "The batch of the changes, to undo them.", **_OPTIONAL})
    changeId = Identifier(
        allow_none=True,
        metadata={"description": "Of an undo: its own batch; null if nothing was restored.", **_OPTIONAL},
    )
    loadUnit = Choice("kg", "lb", metadata={"description": "The unit of loads after a conversion.", **_OPTIONAL})
    converted = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata={
            "description": "Number of converted `workouts` (programs included), `templates`, `trainingMaxes` and "
            "`personalRecords` with loads, and of `loads`.",
            **_OPTIONAL,
        },
    )


def _count(of: str) -> fields.Integer:
    return fields.Integer(metadata={"description": f"Number of {of}."})


class HistoryCounts(Output):
    """How many records an import of history created, or would create."""

    customers = _count("clients")
    sessions = _count("workouts that were done")
    sets = _count("sets that were done")
    exercises = _count("exercises of the company")


class RemovedCounts(Output):
    """How many records the undo of an import removed."""

    customers = _count("clients")
    sessions = _count("workouts that were done")
    exercises = _count("exercises of the company")


class ImportJobResult(JobResult):
    """What a job did; of an import of history also what the file has."""

    class Meta(JobResult.Meta):
        include = {
            "from": Date(
                allow_none=True, metadata={"description": "Of history: the date of the first session.", **_OPTIONAL}
            ),
            "to": Date(
                allow_none=True, metadata={"description": "Of history: the date of the last session.", **_OPTIONAL}
            ),
        }

    format = fields.String(
        allow_none=True,
        metadata={"description": "Of a table: its format; null if it ended before the file was read.", **_OPTIONAL},
    )
    rows = fields.Integer(metadata={"description": "Of history: number of data rows.", **_OPTIONAL})
    reported = fields.Integer(
        metadata={"description": "Of history: number of rows that were not imported, each with an error.", **_OPTIONAL}
    )
    created = fields.Nested(HistoryCounts, metadata=_OPTIONAL)
    questions = fields.List(
        fields.Nested(output_of(ImportQuestion)),
        metadata={"description": "Of history: what the file and the request leave open.", **_OPTIONAL},
    )
    names = fields.List(
        fields.Nested(output_of(NameInFile)),
        metadata={"description": "Of history: the names of exercises, the most frequent first.", **_OPTIONAL},
    )
    removed = fields.Nested(RemovedCounts, metadata=_OPTIONAL)


class BackgroundJob(Output):
    """Work that continues after the response."""

    _id = Identifier()
    kind = Choice("import", "load_unit", "bulk", "undo", metadata={"description": "What the job does."})
    status = Choice(
        "queued",
        "running",
        "done",
        "failed",
        "cancelled",
        metadata={
            "description": "`failed`, `cancelled`: it ended before everything was processed; what it had stored stays."
        },
    )
    done = fields.Integer(
        metadata={
            "description": "Number of records processed; of a conversion: of clients, programs and templates; "
            "of a bulk operation: of clients; of an undo: of changes."
        }
    )
    total = fields.Integer(metadata={"description": "Number of records; 0 until they are counted."})
    result = fields.Nested(ImportJobResult, allow_none=True, metadata={"description": "null until the job has ended."})
    errors = fields.List(
        fields.Nested(BackgroundJobError),
        metadata={
            "description": "The first 100 problems, of a table 1,000; then `MORE_PROBLEMS` with the number of others."
        },
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()

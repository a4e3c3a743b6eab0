"""Responses about background jobs."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Choice, DateTime, Identifier, Output

_OPTIONAL = {"optional": True}


class BackgroundJobError(Output):
    """A problem that a job has found."""

    entry = fields.String(
        metadata={"description": "Where: an entry of the archive with the number of its line, or a line of the CSV."}
    )
    field = fields.String(allow_none=True, metadata={"description": "The path of the field; null: the whole record."})
    code = fields.String(
        metadata={"description": "A stable code, such as `EXTERNAL_ID_TAKEN`. Absent in old jobs.", "optional": True}
    )
    message = fields.String(metadata={"description": "What is wrong, as the continuation of the field's name."})


class JobResult(Output):
    """What an import stored or a conversion of loads converted, or with `dryRun` would have."""

    dryRun = fields.Boolean(metadata={"description": "Whether nothing was stored."})
    imported = fields.Dict(
        keys=fields.String(),
        values=fields.Integer(),
        metadata={"description": "Number of records by collection.", **_OPTIONAL},
    )
    failed = fields.Integer(
        metadata={"description": "Number of records that were left out, each with an error.", **_OPTIONAL}
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


class BackgroundJob(Output):
    """Work that continues after the response."""

    _id = Identifier()
    kind = Choice("import", "load_unit", metadata={"description": "What the job does."})
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
        metadata={"description": "Number of records processed; of a conversion: of clients, programs and templates."}
    )
    total = fields.Integer(metadata={"description": "Number of records; 0 until they are counted."})
    result = fields.Nested(JobResult, allow_none=True, metadata={"description": "null until the job has ended."})
    errors = fields.List(fields.Nested(BackgroundJobError), metadata={"description": "The first 100 problems."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()

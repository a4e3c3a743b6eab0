"""Responses about background jobs."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.validation import Choice, DateTime, Identifier, Output


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


class ImportResult(Output):
    """What an import stored, or with `dryRun` would have stored."""

    dryRun = fields.Boolean(metadata={"description": "Whether nothing was stored."})
    imported = fields.Dict(
        keys=fields.String(), values=fields.Integer(), metadata={"description": "Number of records by collection."}
    )
    failed = fields.Integer(metadata={"description": "Number of records that were left out, each with an error."})


class BackgroundJob(Output):
    """Work that continues after the response."""

    _id = Identifier()
    kind = Choice("import", metadata={"description": "What the job does."})
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
    done = fields.Integer(metadata={"description": "Number of records processed."})
    total = fields.Integer(metadata={"description": "Number of records; 0 until they are counted."})
    result = fields.Nested(ImportResult, allow_none=True, metadata={"description": "null until the job has ended."})
    errors = fields.List(fields.Nested(BackgroundJobError), metadata={"description": "The first 100 problems."})
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()

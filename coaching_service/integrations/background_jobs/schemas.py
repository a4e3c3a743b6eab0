"""The results of background jobs in responses."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.validation import Choice, Identifier, Output
from coaching_service.integrations.history_import.models import FileResult, Removed, SessionDates
from coaching_service.lifecycle.customer_bulk.models import ClientChange

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


class _JobResult(Output):
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
        fields.Nested(output_of(ClientChange)),
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


class _ImportJobResult(FileResult, Removed, SessionDates):
    """What a job did; of an import of history also what the file has."""


RESULT = output_of(_ImportJobResult, _JobResult, name="ImportJobResult")

"""The text fields sent with a file to import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import orjson
from marshmallow import ValidationError, fields, post_load

from coaching_service.core.errors import InvalidFields
from coaching_service.core.validation import Choice, FormBoolean, Identifier, Input
from coaching_service.integrations.history_files.columns import FIELDS
from coaching_service.integrations.history_files.models import Format
from coaching_service.integrations.history_files.rosters import COLUMNS, JOINED
from coaching_service.integrations.history_import.models import NO_ANSWERS, ImportAnswers
from coaching_service.library.imported_names.answers import read_answers

_MAX_ENTRIES, _MAX_BYTES = 5_000, 1_000_000


class JsonMapping(fields.Field[dict[str, str]]):
    """A JSON object of texts, as the text of a form field."""

    def __init__(self, **options: Any) -> None:
        super().__init__(load_default=dict, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> dict[str, str]:
        if value in ("", None):
            return {}
        try:
            sent = orjson.loads(value) if isinstance(value, str) and len(value) <= _MAX_BYTES else None
        except orjson.JSONDecodeError:
            sent = None
        if not isinstance(sent, dict) or len(sent) > _MAX_ENTRIES:
            raise ValidationError("must be a JSON object")
        if not all(isinstance(each, str) for each in sent.values()):
            raise ValidationError("must have texts as values")
        return cast("dict[str, str]", sent)


class AnswerFields(Input):
    """What the caller says about a table."""

    format = Choice(
        *get_args(Format),
        "customers",
        load_default=None,
        metadata={"description": "What the file is. Default: as its headings say."},
    )
    customerId = Identifier(
        load_default=None,
        metadata={
            "description": "The client of a file without a column of clients. With it, a coach with the permission "
            "`customers.edit` may import. Of a file with several clients, rows of others are reported."
        },
    )
    loadUnit = Choice(
        "kg", "lb", load_default=None, metadata={"description": "The unit of loads that the file has without one."}
    )
    distanceUnit = Choice(
        "km",
        "mi",
        "m",
        "yd",
        load_default=None,
        metadata={"description": "The unit of distances that the file has without one."},
    )
    dateOrder = Choice(
        "dmy",
        "mdy",
        "ymd",
        load_default=None,
        metadata={"description": "The order of dates such as 03/04/2026. Default: what all dates of the file fit."},
    )
    names = JsonMapping(
        metadata={
            "description": "JSON object: name of an exercise in the file to the `_id` of an exercise, `create` or "
            "`skip`. Answers are remembered for the next import."
        }
    )
    customers = JsonMapping(
        metadata={"description": "JSON object: client in the file to the `_id` of a client, `create` or `skip`."}
    )
    columns = JsonMapping(
        metadata={
            "description": "JSON object: heading to the field that its column has, such as `date`, `exercise`, `reps`, "
            "`load`; an empty text: the column is not read."
        }
    )

    @post_load
    def as_answers(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Gather the answers in `answers`."""
        if problem := find_wrong_columns(data["columns"]):
            raise ValidationError(problem, "columns")
        sent = {name: data.pop(name, default) for name, default in NO_ANSWERS.items()}
        fields: tuple[Literal["names", "customers"], ...] = ("names", "customers")
        for name in fields:
            try:
                sent[name] = read_answers(sent[name], name)
            except InvalidFields as error:
                raise ValidationError(error.errors[0]["message"], name) from None
        return {**data, "answers": cast("ImportAnswers", sent)}


def find_wrong_columns(columns: Mapping[str, str]) -> str | None:
    """Return what is wrong with answers about columns: a field that is not known, or that two columns have."""
    counts = Counter(columns.values())
    if unknown := sorted(counts.keys() - {*FIELDS, *COLUMNS, ""}):
        return f"must be fields of sets or clients: {', '.join(unknown)[:100]}"
    repeated = [name for name, count in counts.items() if count > 1 and name not in ("", *JOINED)]
    return f"must name one column for each field: {', '.join(repeated)}" if repeated else None


class _HowToImport(Input):
    """Fields of every import: a dry run or not, and what happens to known clients."""

    dryRun = FormBoolean(
        load_default=False,
        metadata={"description": "`true`: check everything, report the problems, and store nothing. Default: `false`."},
    )
    onConflict = Choice(
        "error",
        "update",
        load_default="error",
        metadata={
            "description": "What becomes of a row of clients whose external identifier a client has: it is left out "
            "with an error, or the client gets what its cells have; empty cells change nothing. Default: `error`."
        },
    )


class ImportFields(AnswerFields, _HowToImport):
    """How to import a file."""

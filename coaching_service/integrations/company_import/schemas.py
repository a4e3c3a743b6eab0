"""The text fields sent with a file to import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

from marshmallow import ValidationError, post_load

from coaching_service.core.errors import InvalidFields
from coaching_service.core.form_fields import FormBoolean, FormObject
from coaching_service.core.validation import Choice, Identifier, Input
from coaching_service.integrations.history_files.columns import FIELDS
from coaching_service.integrations.history_files.models import Format
from coaching_service.integrations.history_files.rosters import COLUMNS, JOINED
from coaching_service.integrations.history_import.models import NO_ANSWERS, ImportAnswers
from coaching_service.library.imported_names.answers import read_answers


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
    names = FormObject(
        load_default=dict,
        metadata={
            "description": "JSON object: name of an exercise in the file to the `_id` of an exercise, `create` or "
            "`skip`. Answers are remembered for the next import."
        },
    )
    customers = FormObject(
        load_default=dict,
        metadata={"description": "JSON object: client in the file to the `_id` of a client, `create` or `skip`."},
    )
    columns = FormObject(
        load_default=dict,
        metadata={
            "description": "JSON object: heading to the field that its column has, such as `date`, `exercise`, `reps`, "
            "`load`; an empty text: the column is not read."
        },
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


class DryRunField(Input):
    """Whether a file is only checked."""

    dryRun = FormBoolean(
        load_default=False,
        metadata={"description": "`true`: check everything, report the problems, and store nothing. Default: `false`."},
    )


class _FieldsOfAllFiles(DryRunField):
    """What every file may have, also an archive; first, as clients pass them that are generated in order."""

    onConflict = Choice(
        "error",
        "update",
        load_default="error",
        metadata={
            "description": "What becomes of a row of clients whose external identifier a client has: it is left out "
            "with an error, or the client gets what its cells have; empty cells change nothing. Default: `error`."
        },
    )


class ImportFields(AnswerFields, _FieldsOfAllFiles):
    """How to import a file."""

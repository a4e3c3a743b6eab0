"""The text fields sent with a file to import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, cast

from marshmallow import ValidationError, post_load

from coaching_service.core.errors import InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, Description, Part
from coaching_service.core.query import FormBoolean
from coaching_service.core.validation import Choice, Input
from coaching_service.integrations.history_files.columns import FIELDS
from coaching_service.integrations.history_files.rosters import COLUMNS, JOINED
from coaching_service.integrations.history_import.models import NO_ANSWERS, OWN_FORMATS, ImportAnswers
from coaching_service.library.imported_names import read_answers
from coaching_service.people.customers.models import OnConflict


class DryRunField(TypedDict):
    """Whether a file is only checked."""

    dryRun: Annotated[
        bool,
        FormBoolean(),
        Default(False),
        Description("`true`: check everything, report the problems, and store nothing. Default: `false`."),
    ]


class _FieldsOfAllFiles(DryRunField):
    """What every file may have, also an archive; first, as clients pass them that are generated in order."""

    onConflict: Annotated[
        OnConflict,
        Default("error"),
        Description(
            "What becomes of a row of clients whose external identifier a client has: it is left out with an error, or "
            "the client gets what its cells have; empty cells change nothing. Default: `error`."
        ),
    ]


class ImportOptions(_FieldsOfAllFiles):
    """How a file is imported."""

    answers: ImportAnswers


class _ImportFields(_FieldsOfAllFiles, ImportAnswers):
    """How to import a file."""


class AnswersTogether(Input):
    """The base of forms with the fields of ImportAnswers: they become `answers`."""

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


IMPORT_FIELDS = input_of(_ImportFields, AnswersTogether)


class OwnImportOptions(DryRunField):
    """How a file of the own history is imported."""

    answers: ImportAnswers


class _OwnFormat(AnswersTogether):
    format = Choice(
        *OWN_FORMATS, load_default=None, metadata={"description": "What the file is. Default: as its headings say."}
    )


_Answers: TypeAlias = Part[
    ImportAnswers,
    Literal["loadUnit", "distanceUnit", "durationUnit", "dateOrder", "decimalSign", "names", "columns"],
]
OWN_IMPORT_FIELDS = input_of(_Answers, _OwnFormat, input_of(DryRunField))

"""The text fields sent with a file of the own history."""

from __future__ import annotations

from typing import Literal, TypeAlias

from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Part
from coaching_service.core.validation import Choice
from coaching_service.integrations.company_import.schemas import AnswersTogether, DryRunField
from coaching_service.integrations.history_import.models import OWN_FORMATS, ImportAnswers


class OwnImportOptions(DryRunField):
    """How a file of the own history is imported."""

    answers: ImportAnswers


class _OwnFormat(AnswersTogether):
    format = Choice(
        *OWN_FORMATS, load_default=None, metadata={"description": "What the file is. Default: as its headings say."}
    )


_Answers: TypeAlias = Part[ImportAnswers, Literal["loadUnit", "distanceUnit", "dateOrder", "names", "columns"]]
OWN_IMPORT_FIELDS = input_of(_Answers, _OwnFormat, input_of(DryRunField))

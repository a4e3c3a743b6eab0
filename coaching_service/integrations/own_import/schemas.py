"""The text fields sent with a file of the own history."""

from __future__ import annotations

from coaching_service.core.validation import Choice
from coaching_service.integrations.company_import.schemas import AnswerFields, DryRunField
from coaching_service.integrations.history_import.models import OWN_FORMATS


class OwnImportFields(AnswerFields, DryRunField):
    """How to import a file of the own history."""

    class Meta(AnswerFields.Meta):
        exclude = ("customerId", "customers")

    format = Choice(
        *OWN_FORMATS, load_default=None, metadata={"description": "What the file is. Default: as its headings say."}
    )

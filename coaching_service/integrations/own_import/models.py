"""How clients import their history."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.integrations.history_import.models import ImportAnswers


class OwnImportOptions(TypedDict):
    """How a file of the own history is imported."""

    dryRun: bool
    answers: ImportAnswers

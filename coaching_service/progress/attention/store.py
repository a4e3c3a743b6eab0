"""Dismissed reasons in the database."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.progress.attention.models import StoredDismissal

dismissals = Documents[StoredDismissal](
    "attentionDismissals",
    (Index(("customerId", "reason"), unique=True),),
    client_field="customerId",
    history=History("attention_dismissal"),
    transfer=Portable(StoredDismissal, RECORDS, references={"customerId": "customers"}),
)

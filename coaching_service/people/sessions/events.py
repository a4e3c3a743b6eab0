"""Domain events about sessions."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class SessionsEnded(DomainEvent):
    """Sessions of a coach or client were ended: one (`session_id`), all but one (`kept_session_id`), or all.

    A session that expires is not reported.
    """

    company_id: ObjectId
    subject_id: ObjectId
    session_id: ObjectId | None = None
    kept_session_id: ObjectId | None = None

"""Domain events about sessions."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.database.documents import Filter
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

    def filter(self, session_field: str) -> Filter:
        """Return the filter of documents of these sessions, which have the identifier of theirs in `session_field`."""
        where: Filter = {"companyId": self.company_id, "subjectId": self.subject_id}
        if self.session_id is not None:
            where[session_field] = self.session_id
        elif self.kept_session_id is not None:
            where[session_field] = {"$ne": self.kept_session_id}
        return where

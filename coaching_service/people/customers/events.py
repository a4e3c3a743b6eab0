"""What happens to clients, for features that build on them."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.database.documents import Document
from coaching_service.core.events import DomainEvent


@dataclass(frozen=True)
class CustomerCreated(DomainEvent):
    """A client was created.

    `customer` is the stored document, `first_access_token` the token in plain text, `send_invitation` whether the
    coach wants an invitation to be sent.
    """

    customer: Document
    first_access_token: str
    send_invitation: bool

"""Recipients of invitations in the database."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.people.invitations.models import Recipient

recipients = Documents[Recipient](
    "invitationRecipients",
    (Index(("addressHash",), unique=True),),
    secret=True,
    expire=("expiresAt", 0),
    transfer=NotExported("hashes of addresses under the keys of the service"),
    incidental=True,
)

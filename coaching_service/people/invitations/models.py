"""Recipients of invitations as they are stored."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired

from coaching_service.core.database.models import Stored


class Recipient(Stored):
    """A person whom the company has invited, by the keyed hash of the e-mail address.

    `sentAt`: when the invitations of the last week were sent, or will be. `declinedAt`: when the person asked for no
    more; `expiresAt`: when the document can be deleted, None if the person has declined.
    """

    addressHash: str
    sentAt: list[datetime]
    expiresAt: datetime | None
    declinedAt: NotRequired[datetime]

"""The mail of sandboxes: stored for the developers who test with them, never sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, TypedDict

from coaching_service.core.database.connection import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import Description, Private, private_of
from coaching_service.core.ids import ObjectId

RETENTION = timedelta(days=30)
ORDER = ("-createdAt", "-_id")


class NewSandboxMail(TypedDict):
    """A mail to store; `about` is the client it concerns, if any."""

    to: Annotated[str, Description("The address of the recipient.")]
    subject: Annotated[str, Description("The subject.")]
    text: Annotated[str, Description("The text, with the links and tokens that it contains.")]
    about: Annotated[ObjectId | None, Private]


class SandboxMail(NewSandboxMail, Stored):
    """A mail that would have been sent."""


mails = Documents[SandboxMail](
    "sandboxMails",
    (Index(ORDER), Index(("about",))),
    private=private_of(SandboxMail),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    transfer=NotExported("mail of a sandbox"),
)

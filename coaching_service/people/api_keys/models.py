"""API keys as they are sent, stored and returned."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired, TypeAlias, TypedDict

from marshmallow import RAISE, ValidationError, fields

from coaching_service.core.database.models import Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, Description, Partial, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date, Text
from coaching_service.people.account.models import Account
from coaching_service.people.team.models import PERMISSIONS, Coach, Permissions


class DateTimeInput(fields.Field[datetime]):
    """A time in ISO 8601 (`2026-03-02T08:30:00Z`), read as UTC; without a time zone it is taken as UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> datetime:
        try:
            time = datetime.fromisoformat(value)
            utc = time.astimezone(UTC) if time.tzinfo else time
        except (TypeError, ValueError, OverflowError):
            raise ValidationError("must be a time in ISO 8601, such as 2026-03-02T08:30:00Z") from None
        Date().deserialize(str(utc.date()), attr)
        return utc.replace(tzinfo=None, microsecond=utc.microsecond // 1000 * 1000)


class OptionalPermissions(Permissions):
    """Permissions, or null for no restriction: unlike elsewhere, null is not an empty list."""

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """Return the permissions, or None."""
        return None if value is None else super().deserialize(value, attr, data, **kwargs)


class ApiKeyRestrictions(TypedDict):
    """What a key may not do although its coach may; null: no restriction.

    `outreach`: an assistant that uses the key over /mcp may send mail and messages, and change several clients at once.
    `confirmInChat`: it may confirm calls itself, within limits. `mcpOnly` (missing in older keys): it is refused over
    REST.
    """

    readOnly: Annotated[bool, Default(False)]
    permissions: Annotated[
        list[str] | None, OptionalPermissions(), fields.List(fields.String()), Description(request=PERMISSIONS)
    ]
    expiresAt: Annotated[datetime | None, DateTimeInput(metadata={"type": "string", "format": "date-time"})]
    outreach: Annotated[
        bool,
        Default(False),
        Description(
            "Over /mcp, whether an assistant with this key may contact people and change several clients at once. It "
            "does not restrict REST."
        ),
    ]
    confirmInChat: Annotated[
        bool,
        Default(False),
        Description(
            "Over /mcp, whether an assistant with this key may confirm itself what otherwise waits for the coach's "
            "approval: up to 5 messages and 20 other calls in 10 minutes."
        ),
    ]
    mcpOnly: NotRequired[
        Annotated[
            bool,
            Default(False),
            Description("Whether the key is good at /mcp only: over REST it is refused (`KEY_MCP_ONLY`)."),
        ]
    ]


class ApiKey(Stored):
    """A key, without its secret."""

    coachId: Annotated[ObjectId, Description("The coach whom the key acts as.")]
    name: str
    prefix: str
    lastFour: str
    restrictions: ApiKeyRestrictions
    lastUsedAt: datetime | None
    hash: NotRequired[Annotated[str, Private]]  # keyed
    sealed: NotRequired[Annotated[bytes, Private]]  # the encrypted secret


class ApiKeyWithCoach(ApiKey):
    """A key with its coach and the company."""

    coach: Coach
    company: Account


class CreatedApiKey(ApiKey):
    """A key just created, with its secret."""

    key: str


_RESTRICTIONS = input_of(
    ApiKeyRestrictions, name="NewApiKeyRestrictions", description="What a key may not do although its coach may."
)


# Restrictions of a key; those that are missing do not apply.
NewRestrictions: TypeAlias = Partial[ApiKeyRestrictions]


class NewApiKey(TypedDict):
    """A key to create."""

    name: Annotated[str, Text()]
    restrictions: Annotated[ApiKeyRestrictions | None, fields.Nested(_RESTRICTIONS, unknown=RAISE)]


class RevealedKey(TypedDict):
    """A key's secret."""

    key: str

"""Requests and responses of the API-key operations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields

from coaching_service.core.validation import Boolean, DateTime, Identifier, Input, Output, Text
from coaching_service.people.team.schemas import Permissions


class DateTimeInput(fields.Field[datetime]):
    """A time in ISO 8601 (`2026-03-02T08:30:00Z`), read as UTC; without a time zone it is taken as UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> datetime:
        try:
            time = datetime.fromisoformat(value)
            utc = time.astimezone(UTC) if time.tzinfo else time
        except (TypeError, ValueError, OverflowError):
            raise ValidationError("must be a time in ISO 8601, such as 2026-03-02T08:30:00Z") from None
        return utc.replace(tzinfo=None, microsecond=utc.microsecond // 1000 * 1000)


class OptionalPermissions(Permissions):
    """Permissions, or null for no restriction: unlike elsewhere, null is not an empty list."""

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """Return the permissions, or None."""
        return None if value is None else super().deserialize(value, attr, data, **kwargs)


class NewApiKeyRestrictions(Input):
    """What a key may not do although its coach may."""

    readOnly = Boolean(load_default=False)
    permissions = OptionalPermissions(allow_none=True, load_default=None)
    expiresAt = DateTimeInput(allow_none=True, load_default=None, metadata={"type": "string", "format": "date-time"})


class NewApiKey(Input):
    """A key to create."""

    name = Text(required=True)
    restrictions = fields.Nested(NewApiKeyRestrictions, allow_none=True, load_default=None)


class ApiKeyRestrictions(Output):
    """What a key may not do although its coach may; null: no restriction."""

    readOnly = fields.Boolean()
    permissions = fields.List(fields.String(), allow_none=True)
    expiresAt = DateTime(allow_none=True)


class ApiKey(Output):
    """A key, without its secret."""

    _id = Identifier()
    coachId = Identifier(metadata={"description": "The coach whom the key acts as."})
    name = fields.String()
    prefix = fields.String()
    lastFour = fields.String()
    restrictions = fields.Nested(ApiKeyRestrictions)
    lastUsedAt = DateTime(allow_none=True)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class CreatedApiKey(ApiKey):
    """A key just created, with its secret."""

    key = fields.String()


class RevealedKey(Output):
    """A key's secret."""

    key = fields.String()

"""The fields of requests with the restrictions of API keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields

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

"""The fields of requests about webhooks."""

from __future__ import annotations

from typing import Any

from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.validation import Choice, ListOf, Text


class EventTypes(ListOf):
    """Types of events, without duplicates; null is an empty list."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Choice(*EVENT_TYPES), **{"allow_none": True} | options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class WebhookDescription(Text):
    """The description of a webhook; null is an empty text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": True, "allow_none": True} | options)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """Load the text."""
        return "" if value is None else super().deserialize(value, attr, data, **kwargs)

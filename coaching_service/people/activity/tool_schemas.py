"""Arguments of the tools about activity."""

from __future__ import annotations

from datetime import date
from typing import Any

from coaching_service.core.query import QueryTime


class Since(QueryTime):
    """A time, or a date, which is loaded as a date: its first moment depends on the company's time zone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.metadata = {name: value for name, value in self.metadata.items() if name != "format"}  # a date has another

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if isinstance(value, str) and len(value) == len("2026-03-02"):
            try:
                return date.fromisoformat(value)
            except ValueError:
                raise self.make_error("invalid") from None
        return super()._deserialize(value, attr, data, **options)

"""The field of requests with permissions."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.permissions import ALL_PERMISSIONS
from coaching_service.core.validation import Choice, ListOf


class Permissions(ListOf):
    """Permissions by name, without duplicates, sorted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Choice(*sorted(ALL_PERMISSIONS)), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return sorted(set(super()._deserialize(value, attr, data, **kwargs)))

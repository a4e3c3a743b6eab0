"""Sandboxes as they are returned."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.ids import ObjectId


class Sandbox(TypedDict):
    """A new sandbox, and an unrestricted key of its owner."""

    companyId: ObjectId
    apiKey: str

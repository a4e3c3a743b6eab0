"""Sandboxes as they are returned."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId


class Sandbox(TypedDict):
    """A company for tests."""

    companyId: Annotated[ObjectId, Description("The sandbox, which is a company of its own.")]
    apiKey: Annotated[str, Description("A key of its owner; it begins with `cs_test_`.")]

"""Pending forms as they are returned."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import CustomerReference


class FormRequest(TypedDict):
    """A scheduled form that is not answered; `isOverdue`: its `date` is before the client's today.

    `formId` is None if the form was made for the item.
    """

    customer: CustomerReference
    formId: ObjectId | None
    formName: str
    date: str
    wblockId: ObjectId
    witemId: ObjectId
    isOverdue: bool

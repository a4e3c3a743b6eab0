"""Pending forms as they are asked for and returned."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.progress.own_today import PendingForm


class FormRequestQuery(PartQuery):
    """Filters of the pending forms; they combine with AND."""

    overdue: NotRequired[Annotated[bool, Description("`true`: only requests of past dates; `false`: only the others.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only forms of this client.")]]


class OfCustomer(TypedDict):
    """A record with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]


class FormRequest(OfCustomer, PendingForm):
    """A scheduled form that the client has not answered."""

    isOverdue: Annotated[bool, Description("The date is before the client's today, and not in an absence.")]

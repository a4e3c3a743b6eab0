"""One client as it is returned."""

from __future__ import annotations

from typing import Annotated

from coaching_service.core.external_identity import IdentityResult
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description
from coaching_service.people.availability.models import Availability
from coaching_service.people.customers.models import CustomerProfile


class CustomerNow(CustomerProfile):
    """A client with figures as of today."""

    availability: Annotated[
        Availability | None,
        Description("The period in which the client cannot train as planned, or the next one; null without one."),
    ]


CUSTOMER_NOW = output_of(CustomerNow, IdentityResult, with_private=("companyId",))

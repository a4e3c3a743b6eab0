"""What the customer operations read and answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from marshmallow import ValidationError, fields

from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import QueryBoolean
from coaching_service.core.validation import (
    Boolean,
    Choice,
    Date,
    DateTime,
    Email,
    Identifier,
    Input,
    Output,
    StringList,
    Text,
    Timezone,
    Version,
)

NO_TRAINER = "none"
_EARLIEST_ZONE = timedelta(hours=14)


class Birthday(Date):
    """A day from 1900 on that has begun somewhere on earth."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        day = super()._deserialize(value, attr, data, **options)
        if not "1900-01-01" <= day <= str((datetime.now(UTC) + _EARLIEST_ZONE).date()):
            raise ValidationError("must not be in the future, nor before 1900")
        return day


class CustomerQuery(PageQuery):
    """The filters of the customer list."""

    archived = QueryBoolean(required=True)
    contains = fields.String(metadata={"description": "Part of a name, surname or e-mail, taken literally."})
    groups = fields.List(fields.String(), metadata={"description": "Repeatable; any of the groups."})
    assignedTo = fields.List(
        fields.String(), metadata={"description": "Repeatable; any of the coaches; `none`: clients without one."}
    )


class CustomerDetails(Input):
    """What a coach says of a client."""

    name = Text(required=True)
    surname = Text(allow_blank=True, allow_none=True)
    email = Email(allow_none=True)
    phone = Text(max_length=50, allow_blank=True, allow_none=True)
    birthday = Birthday(allow_none=True)
    timezone = Timezone(allow_none=True)
    groups = StringList()
    assignedTo = Identifier(allow_none=True)


class NewCustomer(CustomerDetails):
    """A client to create."""

    sendInvitation = Boolean(load_default=True)


class NoFormFields(Input):
    """A form without fields beside its file."""


class CustomerReference(Input):
    """The client an action is about."""

    id = Identifier(required=True)
    version = Version()


_PERCENT = {"minimum": 0, "maximum": 100}


class CustomerRoleData(Output):
    """A client's standing with the company."""

    isArchived = fields.Boolean()
    groups = fields.List(fields.String())
    assignedTo = Identifier(allow_none=True, metadata={"description": "The coach who looks after the client."})
    customerType = Choice("REAL", "SAMPLE")
    complianceRate7d = fields.Float(allow_none=True, metadata=_PERCENT)
    complianceRate30d = fields.Float(allow_none=True, metadata=_PERCENT)
    complianceRate90d = fields.Float(allow_none=True, metadata=_PERCENT)
    complianceDate = Date(allow_none=True)
    lastWorkoutDate = Date(allow_none=True, metadata={"description": "The last day anything is scheduled on."})
    firstLoginDate = DateTime(allow_none=True)


class Customer(Output):
    """A client."""

    _id = Identifier()
    name = fields.String()
    surname = fields.String(allow_none=True)
    email = fields.String(allow_none=True, metadata={"format": "email"})
    phone = fields.String(allow_none=True)
    birthday = Date(allow_none=True)
    timezone = fields.String(allow_none=True, metadata={"description": "IANA; null: the company's."})
    role = Choice("CUSTOMER")
    companyId = Identifier()
    profilePhotoUrl = fields.Url(allow_none=True)
    lastActivityDate = DateTime(allow_none=True)
    customerRoleData = fields.Nested(CustomerRoleData)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class CreatedCustomer(Customer):
    """A client just created, with the token by which they set their password."""

    firstAccessToken = fields.UUID()


class CustomerGroup(Output):
    """A group in use and how many clients, archived ones included, are in it."""

    name = fields.String()
    count = fields.Integer()

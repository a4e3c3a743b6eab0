"""Requests and responses of the customer operations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from marshmallow import ValidationError, fields

from coaching_service.core.entries import EntryError, IndependentEntries
from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.list_selection import UpdatedSinceOrSorted
from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import FormVersion, QueryBoolean
from coaching_service.core.validation import (
    Boolean,
    Choice,
    Date,
    DateTime,
    DryRun,
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
MAX_CUSTOMERS = 500
_EARLIEST_ZONE = timedelta(hours=14)


class Birthday(Date):
    """A date from 1900-01-01 to today, in the time zone that is furthest ahead."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        birthday = super()._deserialize(value, attr, data, **options)
        if not "1900-01-01" <= birthday <= str((datetime.now(UTC) + _EARLIEST_ZONE).date()):
            raise ValidationError("must not be in the future or before 1900")
        return birthday


class CustomerQuery(PageQuery, ExternalIdFilter, UpdatedSinceOrSorted):
    """The filters of the customer list."""

    archived = QueryBoolean(required=True)
    contains = fields.String(metadata={"description": "Part of a name, surname or e-mail, taken literally."})
    groups = fields.List(fields.String(), metadata={"description": "Repeatable; any of the groups."})
    assignedTo = fields.List(
        fields.String(), metadata={"description": "Repeatable; any of the trainers; `none`: clients without a trainer."}
    )
    email = fields.String(metadata={"description": "The whole e-mail address, without regard to case."})


class CustomerDetails(Input):
    """The fields of a client that a coach writes."""

    name = Text(required=True)
    surname = Text(allow_blank=True, allow_none=True)
    email = Email(allow_none=True)
    phone = Text(max_length=50, allow_blank=True, allow_none=True)
    birthday = Birthday(allow_none=True)
    timezone = Timezone(allow_none=True)
    groups = StringList()
    assignedTo = Identifier(allow_none=True)


class CustomerFields(CustomerDetails, IdentityFields):
    """The fields of a client that a coach writes, and what another system knows the client by."""


class NewCustomer(CustomerFields):
    """A client to create."""

    sendInvitation = Boolean(load_default=True)


class BatchCustomer(CustomerFields):
    """A client to create together with others."""

    sendInvitation = Boolean(
        load_default=False,
        metadata={"description": "Whether to send an invitation to the e-mail address. Default: false."},
    )


class CustomerBatch(DryRun):
    """Clients to create or change."""

    customers = IndependentEntries(
        BatchCustomer,
        maximum=MAX_CUSTOMERS,
        required=True,
        metadata={"description": f"1 to {MAX_CUSTOMERS} clients, each validated by itself."},
    )
    onConflict = Choice(
        "error",
        "update",
        load_default="error",
        metadata={
            "description": "What becomes of an entry whose `externalId` a client has: it is not valid, or it changes "
            "that client."
        },
    )


class CustomerBatchEntry(Output):
    """What became of an entry: `_id` or `errors`."""

    index = fields.Integer(metadata={"description": "The position of the entry in the request, from 0."})
    _id = Identifier(metadata={"description": "The identifier of the client.", "optional": True})
    errors = fields.List(
        fields.Nested(EntryError),
        metadata={"description": "Why no client was created or changed.", "optional": True},
    )


class CustomerBatchResult(Output):
    """What became of each entry, in order: inspect `errors` even though the status is 200."""

    created = fields.Integer(metadata={"description": "How many clients were created."})
    updated = fields.Integer(metadata={"description": "How many clients have the fields of their entry."})
    results = fields.List(fields.Nested(CustomerBatchEntry), metadata={"description": "One result for each entry."})


class NoFormFields(Input):
    """The text fields of a form that has only a file."""


class ProfilePhotoFields(Input):
    """The text fields sent with a profile photo."""

    version = FormVersion()


class CustomerReference(Input):
    """The client to archive or restore."""

    id = Identifier(required=True)
    version = Version()


_PERCENT = {"minimum": 0, "maximum": 100}


class CustomerRoleData(Output):
    """A client's status in the company."""

    isArchived = fields.Boolean()
    groups = fields.List(fields.String())
    assignedTo = Identifier(allow_none=True, metadata={"description": "The trainer of the client."})
    customerType = Choice("REAL", "SAMPLE")
    complianceRate7d = fields.Float(allow_none=True, metadata=_PERCENT)
    complianceRate30d = fields.Float(allow_none=True, metadata=_PERCENT)
    complianceRate90d = fields.Float(allow_none=True, metadata=_PERCENT)
    complianceDate = Date(allow_none=True)
    lastWorkoutDate = Date(allow_none=True, metadata={"description": "The last date with a scheduled workout."})
    lastTrainedDate = Date(
        allow_none=True, metadata={"description": "The date of the latest session with completed work."}
    )
    firstLoginDate = DateTime(allow_none=True)


class ContactDetails(Output):
    """Who a client is, and how to reach them."""

    _id = Identifier()
    name = fields.String()
    surname = fields.String(allow_none=True)
    email = fields.String(allow_none=True, metadata={"format": "idn-email"})
    phone = fields.String(allow_none=True)
    birthday = Date(allow_none=True)
    timezone = fields.String(allow_none=True, metadata={"description": "IANA name; null: the company's time zone."})


class Customer(ContactDetails, IdentityResult):
    """A client."""

    role = Choice("CUSTOMER")
    companyId = Identifier()
    profilePhotoUrl = fields.Url(allow_none=True)
    lastActivityDate = DateTime(
        allow_none=True,
        metadata={"description": "The time of the client's own latest action; what a coach logs does not change it."},
    )
    customerRoleData = fields.Nested(CustomerRoleData)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class CreatedCustomer(Customer):
    """A client just created, with the token by which the client sets a password."""

    firstAccessToken = fields.UUID()


class NamedCustomer(Output):
    """A client by identifier and full name."""

    _id = Identifier()
    name = fields.String(metadata={"description": "Name and surname."})


class CustomerGroup(Output):
    """A group and the number of clients in it, archived ones included."""

    name = fields.String()
    count = fields.Integer()

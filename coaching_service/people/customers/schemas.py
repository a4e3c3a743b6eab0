"""Requests and responses of the customer operations."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.external_identity import ExternalIdFilter, IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.independent_entries import EntryError, IndependentEntries
from coaching_service.core.list_selection import UpdatedSinceOrSorted
from coaching_service.core.pagination import PageQuery
from coaching_service.core.query import FormVersion, QueryBoolean
from coaching_service.core.validation import (
    Choice,
    DryRun,
    Identifier,
    Input,
    Output,
    Version,
)
from coaching_service.people.customers import models

NO_TRAINER = "none"
MAX_CUSTOMERS = 500


class CustomerQuery(PageQuery, ExternalIdFilter, UpdatedSinceOrSorted):
    """The filters of the customer list."""

    archived = QueryBoolean(required=True)
    contains = fields.String(metadata={"description": "Part of a name, surname or e-mail, taken literally."})
    groups = fields.List(fields.String(), metadata={"description": "Repeatable; any of the groups."})
    assignedTo = fields.List(
        fields.String(), metadata={"description": "Repeatable; any of the trainers; `none`: clients without a trainer."}
    )
    email = fields.String(metadata={"description": "The whole e-mail address, without regard to case."})


CustomerFields = input_of(models.WrittenDetails, IdentityFields, name="CustomerFields")
NewCustomer = input_of(models.SentCustomer, IdentityFields, name="NewCustomer")
BatchCustomer = input_of(models.SentBatchCustomer, IdentityFields, name="BatchCustomer")


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
    duplicates = fields.List(
        fields.Nested(output_of(models.Duplicate)),
        metadata={
            "description": "For a new client, if any: others with the same e-mail address or full name.",
            "optional": True,
        },
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


Customer = output_of(models.CustomerProfile, IdentityResult, name="Customer", with_private=("companyId",))
CreatedCustomer = output_of(models.CreatedCustomer, Customer)


class NamedCustomer(Output):
    """A client by identifier and full name."""

    _id = Identifier()
    name = fields.String(metadata={"description": "Name and surname."})


class CustomerGroup(Output):
    """A group and the number of clients in it, archived ones included."""

    name = fields.String()
    count = fields.Integer()

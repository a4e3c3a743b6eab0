"""Batches of clients as they are sent, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from marshmallow import fields

from coaching_service.core.errors import FieldError
from coaching_service.core.external_identity import IdentityFields
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.fields import Default, Description, Optional
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import EntryError, IndependentEntries, InvalidEntry
from coaching_service.core.validation import patch_of
from coaching_service.people.customers.models import CustomerUpsert, OnConflict, SentBatchCustomer

MAX_CUSTOMERS = 500
BatchCustomer = input_of(SentBatchCustomer, IdentityFields, name="NewBatchCustomer")
_SENT_CUSTOMER = type(patch_of(BatchCustomer, name="BatchCustomer"))


class CustomerBatch(TypedDict):
    """Clients to create or change."""

    customers: Annotated[
        Sequence[CustomerUpsert | InvalidEntry],
        IndependentEntries(_SENT_CUSTOMER, maximum=MAX_CUSTOMERS),
        Description(f"1 to {MAX_CUSTOMERS} clients, each validated by itself. A new one needs a `name`."),
    ]
    onConflict: Annotated[
        OnConflict,
        Default("error"),
        Description(
            "What becomes of an entry whose `externalId` a client has: it is not valid, or it changes that client."
        ),
    ]


class Duplicate(TypedDict):
    """A client who may be the same person as a new one."""

    _id: ObjectId
    name: Annotated[str, Description("The full name.")]
    same: Annotated[
        Literal["email", "name"], Description("What is the same: the e-mail address, or only the full name.")
    ]


class CustomerBatchEntry(TypedDict):
    """What became of an entry: `_id` or `errors`."""

    index: Annotated[int, Description("The position of the entry in the request, from 0.")]
    _id: NotRequired[Annotated[ObjectId, Description("The identifier of the client."), Optional]]
    result: NotRequired[
        Annotated[Literal["created", "updated", "unchanged"], Description("What became of the client."), Optional]
    ]
    version: NotRequired[Annotated[int, Description("The version that the client has now."), Optional]]
    errors: NotRequired[
        Annotated[
            list[FieldError],
            fields.List(fields.Nested(EntryError)),
            Description("Why no client was created or changed."),
            Optional,
        ]
    ]
    duplicates: NotRequired[
        Annotated[
            list[Duplicate],
            Description("For a new client, if any: others with the same e-mail address or full name."),
            Optional,
        ]
    ]


_RESULT_OF_ENTRY = output_of(CustomerBatchEntry, first=("index",))


class CustomerBatchResult(TypedDict):
    """What became of each entry, in order: inspect `errors` even though the status is 200."""

    created: Annotated[int, Description("How many clients were created.")]
    updated: Annotated[int, Description("How many clients were changed.")]
    unchanged: Annotated[int, Description("How many clients had the fields of their entry already.")]
    results: Annotated[
        list[CustomerBatchEntry],
        fields.List(fields.Nested(_RESULT_OF_ENTRY)),
        Description("One result for each entry."),
    ]

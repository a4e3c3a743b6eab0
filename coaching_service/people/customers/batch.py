"""Creating many clients at once: all valid ones in one transaction, in a number of round trips that does not grow."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.entries import InvalidEntry
from coaching_service.core.errors import FieldError
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.people.customers import creation, store
from coaching_service.people.customers.events import CustomerCreation, CustomersCreated
from coaching_service.people.customers.models import BatchEntryResult, BatchResult, CustomerDetails, NewCustomer
from coaching_service.people.team import service as team

Entry = NewCustomer | InvalidEntry


@transactional
async def create_many(ctx: Context, entries: Sequence[Entry]) -> BatchResult:
    """Create a client for each valid entry.

    Not valid are entries whose trainer is not a coach of the company, whose identifier in another system is taken, and
    those that repeat an earlier one: its identifier in another system or, without one, name, surname and e-mail.
    An employee with the scope `assigned` becomes the trainer as in service.create.
    """
    results: list[BatchEntryResult] = [{"index": index} for index in range(len(entries))]
    for index, errors in (await _find_errors(ctx, entries)).items():
        results[index]["errors"] = list(errors)
    valid = [
        (index, entry, str(uuid.uuid4()))
        for index, entry in enumerate(entries)
        if not isinstance(entry, InvalidEntry) and "errors" not in results[index]
    ]
    documents = [creation.build_document(creation.with_trainer(ctx, entry), token) for _, entry, token in valid]
    stored = await store.insert_many(ctx, documents)
    for (index, _, _), customer in zip(valid, stored, strict=True):
        results[index]["_id"] = customer["_id"]
    creations = [
        CustomerCreation(customer, token, entry["sendInvitation"])
        for (_, entry, token), customer in zip(valid, stored, strict=True)
    ]
    if creations:
        await ctx.publish(CustomersCreated(creations))
    return {"created": len(stored), "results": results}


async def _find_errors(ctx: Context, entries: Sequence[Entry]) -> dict[int, Sequence[FieldError]]:
    """Return the errors of the entries that are not valid, by their positions."""
    errors: dict[int, Sequence[FieldError]] = {
        index: entry.errors for index, entry in enumerate(entries) if isinstance(entry, InvalidEntry)
    }
    coaches = {coach["_id"] for coach in await team.list_coaches(ctx)}
    external_ids = [entry.get("externalId") for entry in entries if not isinstance(entry, InvalidEntry)]
    taken = await store.find_taken_external_ids(ctx, [each for each in external_ids if each is not None])
    first_of: dict[tuple[str, ...], int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, InvalidEntry):
            continue
        if error := _find_error(entry, coaches, taken) or _find_repetition(entry, first_of):
            errors[index] = [error]
        else:
            first_of[_key_of(entry)] = index
    return errors


def _find_error(entry: NewCustomer, coaches: set[ObjectId], taken: set[str]) -> FieldError | None:
    if (trainer := entry.get("assignedTo")) is not None and trainer not in coaches:
        return {"field": "assignedTo", "code": "NOT_FOUND", "message": "is not a coach of the company"}
    if entry.get("externalId") in taken:
        return {"field": "externalId", "code": "EXTERNAL_ID_TAKEN", "message": "is that of another record"}
    return None


def _find_repetition(entry: NewCustomer, first_of: dict[tuple[str, ...], int]) -> FieldError | None:
    first = first_of.get(_key_of(entry))
    if first is None:
        return None
    if entry.get("externalId") is not None:
        return {"field": "externalId", "code": "DUPLICATE", "message": f"is that of entry {first} too"}
    message = f"is that of entry {first} too, with the same surname and e-mail address"
    return {"field": "name", "code": "DUPLICATE", "message": message}


def _key_of(details: CustomerDetails) -> tuple[str, ...]:
    """Return what two entries of the same client have in common."""
    if (external_id := details.get("externalId")) is not None:
        return (external_id,)
    texts = (details["name"], details.get("surname"), details.get("email"))
    return tuple(normalize(text or "") for text in texts)

"""Clients who may be the same person as one that is to be created: with the same e-mail address or full name."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.people.customers import list_store, service
from coaching_service.people.customers.batch_models import Duplicate
from coaching_service.people.customers.full_names import full_name_key
from coaching_service.people.customers.models import Customer, CustomerDetails
from coaching_service.people.identities.addresses import account_key

_MAX_FIRST_WORDS = 5


async def find_duplicates(ctx: Context, entries: Sequence[CustomerDetails]) -> list[list[Duplicate]]:
    """Return, for each client to create, those in the coach's scope with the same e-mail address or full name.

    Archived clients too; names are compared without regard to case and accents.
    """
    emails = [each["email"] for each in entries if each.get("email")]
    by_email = await list_store.find_by_emails(ctx, [email for email in emails if email])
    by_name = await list_store.find_by_sort_names(ctx, {name for each in entries for name in _possible_names(each)})
    return [_compare(ctx, entry, by_email, by_name) for entry in entries]


def _possible_names(client: CustomerDetails) -> set[str]:
    """Return what the field `name` can be of clients with the same full name: its first words, or all of it."""
    words = full_name_key(client).split()
    first_words = (" ".join(words[:end]) for end in range(1, _MAX_FIRST_WORDS))
    return {normalize(client["name"]), full_name_key(client), *first_words}


def _compare(
    ctx: Context, entry: CustomerDetails, by_email: Sequence[Customer], by_name: Sequence[Customer]
) -> list[Duplicate]:
    email = account_key(entry.get("email") or "")
    found: dict[ObjectId, Duplicate] = {}
    for client in by_email:
        if email and account_key(client["email"] or "") == email:
            found[client["_id"]] = {"_id": client["_id"], "name": service.full_name(client), "same": "email"}
    for client in by_name:
        if full_name_key(client) == full_name_key(entry):
            duplicate: Duplicate = {"_id": client["_id"], "name": service.full_name(client), "same": "name"}
            found.setdefault(client["_id"], duplicate)
    visible = {each["_id"] for each in (*by_email, *by_name) if service.is_in_scope(ctx, each)}
    return [duplicate for identifier, duplicate in found.items() if identifier in visible]

"""Full names of clients, as they are compared and as they tell clients apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.people.customers.models import Customer, CustomerDetails, CustomerIdentity
from coaching_service.people.customers.service import full_name


def full_name_key(client: CustomerDetails | Customer | CustomerIdentity) -> str:
    """Return what is the same for clients with the same full name."""
    return normalize(full_name(client))


def distinct_names(clients: Sequence[CustomerIdentity]) -> dict[ObjectId, str]:
    """Return the full names; of clients with the same name, with the address or identifier that tells them apart."""
    counts = Counter(full_name_key(each) for each in clients)
    names: dict[ObjectId, str] = {}
    for each in clients:
        distinction = each["email"] or each.get("externalId") or each["_id"]
        is_unique = counts[full_name_key(each)] == 1
        names[each["_id"]] = full_name(each) if is_unique else f"{full_name(each)} ({distinction})"
    return names

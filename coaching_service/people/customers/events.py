"""Domain events about clients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coaching_service.core.events import DomainEvent
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import Customer


@dataclass(frozen=True)
class CustomerCreation:
    """A client who was created.

    `first_access_token` is in plain text; `send_invitation`: the coach wants an invitation to be sent.
    """

    customer: Customer
    first_access_token: str
    send_invitation: bool


@dataclass(frozen=True)
class CustomersCreated(DomainEvent):
    """Clients were created."""

    created: Sequence[CustomerCreation]


@dataclass(frozen=True)
class CustomersDeleted(DomainEvent):
    """Clients were deleted; the rest of their data is still stored."""

    customer_ids: Sequence[ObjectId]


@dataclass(frozen=True)
class GroupsChange:
    """The groups that a client has joined and left."""

    customer_id: ObjectId
    joined: frozenset[str]
    left: frozenset[str]

    @staticmethod
    def between(customer_id: ObjectId, before: Iterable[str], after: Iterable[str]) -> GroupsChange:
        """Return the change of a client's groups."""
        earlier, later = frozenset(before), frozenset(after)
        return GroupsChange(customer_id, later - earlier, earlier - later)


@dataclass(frozen=True)
class GroupsChanged(DomainEvent):
    """Clients have joined or left groups; those who were created in a group are in CustomersCreated."""

    changes: Sequence[GroupsChange]

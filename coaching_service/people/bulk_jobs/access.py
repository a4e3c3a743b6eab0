"""What reading a job needs, and what controlling it needs: cancelling it, and undoing what it has changed."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.auth.access import Access, coach, even_while_converting, owner
from coaching_service.core.auth.permissions import CUSTOMERS


@dataclass(frozen=True)
class JobAccess:
    """The access rules of a kind of job; `control` is also what requesting such a job needs."""

    reading: Access
    control: Access


def of_clients(*permissions: str) -> JobAccess:
    """Return the access to a job about clients, which needs these permissions to change them."""
    return JobAccess(even_while_converting(coach(CUSTOMERS.VIEW)), coach(*permissions))


OF_OWNER = JobAccess(even_while_converting(owner()), owner())

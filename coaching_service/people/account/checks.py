"""The check of sandboxes."""

from __future__ import annotations

from coaching_service.core.database.checks import check_of
from coaching_service.people.account import store

CHECKS = (
    check_of(
        "sandboxes",
        "Sandboxes belong to a company",
        store.list_lost_sandboxes,
        "Sandboxes that are not the sandbox of a company",  # they are not deleted with one
        "Erase each with admin companies erase and its identifier, if its company is not missing by mistake",
    ),
)

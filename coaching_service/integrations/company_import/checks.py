"""The check of imports that do not continue."""

from __future__ import annotations

from coaching_service.core.database.checks import check_of
from coaching_service.integrations.company_import import service

CHECKS = (
    check_of(
        "imports",
        "Imports continue",
        service.list_abandoned,
        "Imports that no job continues",  # their company cannot begin another one
        "Run doctor --repair, which ends them with an error, so that the owner can import again",
        service.end_abandoned,
    ),
)

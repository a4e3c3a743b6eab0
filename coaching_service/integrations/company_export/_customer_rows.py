"""Clients as CSV, in columns that an import reads as the same clients (docs/export-format.md)."""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator, Mapping

from coaching_service.core.csv_rows import write_rows
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_files.rosters import join_groups
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer
from coaching_service.people.team import service as team

_BATCH = 200
_COLUMNS = (
    *("name", "surname", "email", "phone", "birthday", "timezone"),
    *("external_id", "groups", "status", "coach_email"),
)


async def iterate(ctx: Context) -> AsyncGenerator[bytes, None]:
    """Yield the CSV in chunks: the columns, then a row for each client, archived ones too.

    It begins with a byte order mark, without which Excel takes UTF-8 for another encoding.
    """
    coaches = {coach["_id"]: coach["email"] for coach in await team.list_coaches(ctx)}
    rows: list[list[object]] = [[*_COLUMNS]]
    yield codecs.BOM_UTF8
    async for customer in customers.iterate_all(ctx):
        rows.append(_row_of(customer, coaches))
        if len(rows) >= _BATCH:
            yield write_rows(rows)
            rows = []
    yield write_rows(rows)


def _row_of(customer: Customer, coaches: Mapping[ObjectId, str]) -> list[object]:
    status = customer["customerRoleData"]
    trainer = status["assignedTo"]
    return [
        customer["name"],
        customer["surname"],
        customer["email"],
        customer["phone"],
        customer["birthday"],
        customer["timezone"],
        customer.get("externalId"),
        join_groups(status["groups"]),
        "archived" if status["isArchived"] else "active",
        coaches.get(trainer) if trainer is not None else None,
    ]

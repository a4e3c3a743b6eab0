"""Importing a CSV file of clients: each row becomes a client, without an invitation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import IO, cast

from coaching_service.core.database.context import Context
from coaching_service.core.errors import ExternalIdTaken
from coaching_service.integrations.background_jobs.models import JobError
from coaching_service.integrations.company_import._archive_reader import InvalidArchive
from coaching_service.integrations.company_import._customer_rows import (
    CustomerFile,
    CustomerRow,
    key_of,
    read_customers,
)
from coaching_service.integrations.company_import._progress import Outcome, Progress
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerDetails, NewCustomer, OnConflict

BATCH = 200


class CustomerImport:
    """An import of a CSV file of clients."""

    def __init__(self, progress: Progress, file: CustomerFile) -> None:
        self._progress, self._file = progress, file

    @classmethod
    async def open(cls, progress: Progress, file: IO[bytes]) -> CustomerImport:
        """Read the file. Raises InvalidArchive."""
        return cls(progress, await asyncio.to_thread(read_customers, file))

    async def start(self) -> None:
        """Count the rows, and report the columns that are not known."""
        errors: list[JobError] = [
            {
                "entry": "line 1",
                "field": heading[:100],
                "code": "UNKNOWN_COLUMN",
                "message": "is not a known column and is left out",
            }
            for heading in self._file.ignored
        ]
        if not self._file.rows:
            raise InvalidArchive("has no rows")

        async def write(_: Context) -> None:
            pass

        await self._progress.start(len(self._file.rows), write, errors)

    async def run_batch(self) -> bool:
        """Import the next rows; returns False if there are none left. Raises Superseded."""
        first = self._progress.position[1]
        rows = self._file.rows[first : first + BATCH]
        if not rows:
            return False
        await self._check(rows)
        accepted = [_entry(row.details) for row in rows if row.details is not None]
        outcome = Outcome({"customers": len(accepted)}, _errors(rows), len(rows) - len(accepted))

        async def write(tx: Context) -> None:
            if not self._progress.work["isDryRun"]:
                saved = await batch.save_many(tx, accepted, self._on_conflict)
                if saved["created"] + saved["updated"] < len(accepted):  # a client was created since the check
                    raise ExternalIdTaken

        await self._progress.advance((0, first + len(rows)), len(rows), outcome, write)
        return True

    def suspend(self) -> None:
        """Do nothing: the next step reads the file again."""

    @property
    def _on_conflict(self) -> OnConflict:
        return self._progress.work.get("onConflict", "error")

    async def _check(self, rows: Sequence[CustomerRow]) -> None:
        """Leave out rows of clients whom the company has."""
        ctx = self._progress.ctx
        valid = [(row, row.details) for row in rows if row.details is not None]
        checked = await batch.check(ctx, [_entry(details) for _, details in valid], self._on_conflict)
        for index, errors in checked.errors.items():
            for error in errors:
                valid[index][0].reject(error["field"], error["code"], error["message"], error.get("_id"))
        new = [(row, details) for row, details in valid if details.get("externalId") not in checked.known]
        emails = [email for _, details in new if (email := details.get("email"))]
        known = {key_of(each): each["_id"] for each in await customers.find_by_emails(ctx, emails)}
        for row, details in new:
            if details.get("email") and (holder := known.get(key_of(details))) is not None:
                message = "is a client of the company already: name and e-mail address are the same"
                row.reject(None, "ALREADY_EXISTS", message, holder)


def _entry(details: CustomerDetails) -> NewCustomer:
    return cast("NewCustomer", {**details, "sendInvitation": False})


def _errors(rows: Sequence[CustomerRow]) -> list[JobError]:
    return [problem for row in rows for problem in row.problems]

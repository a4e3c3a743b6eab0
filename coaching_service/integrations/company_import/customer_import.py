"""Importing a CSV file of clients: each row becomes a client, without an invitation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import IO

from coaching_service.core.database.context import Context
from coaching_service.integrations.background_jobs.models import JobError
from coaching_service.integrations.company_import.archive_reader import InvalidArchive
from coaching_service.integrations.company_import.customer_rows import (
    CustomerFile,
    CustomerRow,
    key_of,
    read_customers,
)
from coaching_service.integrations.company_import.progress import Outcome, Progress
from coaching_service.people.customers import creation, listing
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerDetails

BATCH = 50
_PAGE = 50


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
            {"entry": "line 1", "field": heading[:100], "message": "is not a known column and is left out"}
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
        sent = [row.details.get("externalId") for row in rows if row.details is not None]
        taken = await customers.find_taken_external_ids(self._progress.ctx, [each for each in sent if each is not None])
        for row in rows:
            if row.details is not None and row.details.get("externalId") in taken:
                row.reject("externalId", "is that of another client of the company")
            elif row.details is not None and await self._exists(row):
                row.reject(None, "is a client of the company already: name and e-mail address are the same")
        accepted = [row for row in rows if row.details is not None]
        outcome = Outcome({"customers": len(accepted)}, _errors(rows), len(rows) - len(accepted))

        async def write(tx: Context) -> None:
            if not self._progress.work["isDryRun"]:
                for row in accepted:
                    if row.details is not None:
                        await creation.create_customer(tx, row.details, send_invitation=False)

        await self._progress.advance((0, first + len(rows)), len(rows), outcome, write)
        return True

    def suspend(self) -> None:
        """Do nothing: the next step reads the file again."""

    async def _exists(self, row: CustomerRow) -> bool:
        """Whether the company has a client with the name and the e-mail address of a row."""
        if row.details is None or not (email := row.details.get("email")):
            return False
        for archived in (False, True):
            page = await listing.list_customers(self._progress.ctx, archived=archived, page=1, size=_PAGE, email=email)
            for known in page["docs"]:
                details: CustomerDetails = {
                    "name": known["name"],
                    "surname": known["surname"],
                    "email": known["email"],
                }
                if key_of(details) == key_of(row.details):
                    return True
        return False


def _errors(rows: Sequence[CustomerRow]) -> list[JobError]:
    return [
        {"entry": f"line {row.line}", "field": field_path, "message": message}
        for row in rows
        for field_path, message in row.problems
    ]

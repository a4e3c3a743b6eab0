"""Importing an export: first the whole file is checked, then its collections are stored one after another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import IO, Any, NotRequired, TypedDict

import orjson

from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.json_conversion import converter_of
from coaching_service.integrations.company_export.rows import ACCOUNT, COACHES, portable_collections, records_entry
from coaching_service.integrations.company_import import _dry_run
from coaching_service.integrations.company_import._archive_reader import ArchiveReader, InvalidArchive
from coaching_service.integrations.company_import._dry_run import Accepted
from coaching_service.integrations.company_import._records import IdMap, RecordImport, ReferenceCheck
from coaching_service.integrations.history_import.importing import Outcome, Progress
from coaching_service.library.exercises import muscles
from coaching_service.library.exercises import service as exercises
from coaching_service.library.metric_sets.models import UNITS
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AccountDetails, AccountNotifications, AttentionSettings, LoadUnit
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import addresses
from coaching_service.people.jobs.models import JobError
from coaching_service.people.team import service as team

_MAX_COACHES = 10_000
_MAX_UNKNOWN = 10


class ArchiveImport:
    """An import of an export."""

    def __init__(
        self,
        progress: Progress,
        reader: ArchiveReader,
        map_id: IdMap,
        problems: list[JobError],
    ) -> None:
        self._progress, self._reader, self._map_id, self._problems = progress, reader, map_id, problems
        self._current: tuple[int, RecordImport] | None = None
        self._collections = list(portable_collections())
        self._accepted: Accepted | None = None
        if progress.work["isDryRun"]:
            lasting = _dry_run.referred_to([portable for *_, portable in self._collections])
            self._accepted = Accepted(lasting)
        self._references = ReferenceCheck(progress.ctx, self._accepted)

    @classmethod
    async def open(cls, progress: Progress, file: IO[bytes]) -> ArchiveImport:
        """Read the directory of an export. Raises InvalidArchive."""
        reader = await asyncio.to_thread(ArchiveReader, file)
        fixed, authors, problems = await _find_fixed_ids(progress.ctx, reader)
        map_id = IdMap(progress.work["seed"], fixed, authors)
        return cls(progress, reader, map_id, problems)

    async def prepare(self) -> AsyncIterator[int]:
        """Check the whole file, count its records, and take over the settings of the account.

        Raises InvalidArchive, also if its loads are in another unit than the company's.
        """
        if self._progress.work["isStarted"]:
            return
        yield 0
        known = {name for name, *_ in self._collections}
        for name in self._reader.collections:
            if name not in known:
                self._report(records_entry(name), "is not a collection of this version")
        for entry in self._reader.unknown[:_MAX_UNKNOWN]:
            self._report(entry[:200], "is not part of an export and is left out")
        lists = [records_entry(name) for name, *_ in self._collections]
        total = await asyncio.to_thread(self._reader.check, lists)
        settings = read_account(self._reader)
        is_dry_run = self._progress.work["isDryRun"]

        async def write(tx: Context) -> None:
            await apply_account(tx, settings, is_dry_run=is_dry_run)

        try:
            await self._progress.start(total, write, self._problems)
        except (Conflict, InvalidFields) as error:
            raise InvalidArchive(str(error.message), ACCOUNT) from None

    def _report(self, entry: str, message: str) -> None:
        self._problems.append({"entry": entry, "field": None, "code": "INVALID_FILE", "message": message})

    async def run_batch(self) -> bool:
        """Import the next records; returns False if there are none left. Raises InvalidArchive, Superseded."""
        if self._accepted is not None and self._accepted.position < self._progress.position:
            await self._repeat(self._accepted)
        while (number := self._progress.position[0]) < len(self._collections):
            if self._reader.has(records_entry(self._collections[number][0])):
                if self._current is None or self._current[0] != number:
                    self._current = (number, self._import_of(number, self._progress.position[1]))
                if await self._current[1].run_batch():
                    return True
            await self._progress.advance((number + 1, 0), 0, Outcome())
            if self._accepted is not None:
                self._accepted.move((number + 1, 0))
        return False

    def _import_of(self, number: int, start: int) -> RecordImport:
        """Return the import of the records of a collection, from the line `start`."""
        name, collection, portable = self._collections[number]
        return RecordImport(
            self._progress,
            self._reader,
            name,
            collection,
            portable,
            self._map_id,
            self._references,
            self._accepted,
            start,
        )

    async def _repeat(self, accepted: Accepted) -> None:
        """Find out again what the dry run has accepted up to the position of its job: another process did that."""
        end = self._progress.position
        while accepted.position < end:
            number, start = accepted.position
            is_last = number == end[0]
            if self._reader.has(records_entry(self._collections[number][0])):
                await self._import_of(number, start).repeat(accepted, number, end[1] if is_last else None)
            accepted.move(end if is_last else (number + 1, 0))
        self._reader.reset_limit()


async def _find_fixed_ids(
    ctx: Context, reader: ArchiveReader
) -> tuple[dict[ObjectId, ObjectId], dict[ObjectId, ObjectId], list[JobError]]:
    """Return the identifiers that are not mapped to new ones, with what they are mapped to; likewise of authors;
    and coaches not found.

    Muscles, units and shared exercises are the same everywhere. The owner of the export becomes the owner of the
    company, other coaches become those with the same e-mail address. What another person wrote does not become the
    owner's: authors are only those with the same e-mail address.
    """
    shared = await exercises.list_shared_ids(ctx)
    fixed = {identifier: identifier for identifier in (*muscles.NAME_OF, *UNITS, *shared)}
    account = reader.read_object(ACCOUNT)
    if (company_id := parse_id(account.get("_id"))) is not None:
        fixed[company_id] = ctx.company_id
    own = {addresses.account_key(coach["email"]): coach["_id"] for coach in await team.list_coaches(ctx)}
    authors: dict[ObjectId, ObjectId] = {}
    problems: list[JobError] = []
    for number, coach in enumerate(await asyncio.to_thread(_read_coaches, reader), 1):
        coach_id, email = parse_id(coach.get("_id")), coach.get("email")
        same = own.get(addresses.account_key(str(email)))
        target = ctx.caller.id if coach.get("role") == "OWNER" else same
        if coach_id is not None and same is not None:
            authors[coach_id] = same
        if coach_id is not None and target is not None:
            fixed[coach_id] = target
        else:
            message = "is not the e-mail address of a coach of the company: clients of this coach have no trainer"
            problems.append(
                {"entry": f"{COACHES}:{number}", "field": "email", "code": "COACH_NOT_FOUND", "message": message}
            )
    return fixed, authors, problems


def _read_coaches(reader: ArchiveReader) -> list[dict[str, Any]]:
    if not reader.has(COACHES):
        return []
    coaches: list[dict[str, Any]] = []
    for line, text in reader.lines(COACHES):
        try:
            coach = orjson.loads(text)
        except orjson.JSONDecodeError:
            coach = None
        if not isinstance(coach, dict) or line >= _MAX_COACHES:
            raise InvalidArchive("is not a list of coaches", COACHES)
        coaches.append(coach)
    return coaches


# --- the settings of the account -------------------------------------------------------------------------------------


class AccountSettings(TypedDict):
    """The account of an export."""

    _id: ObjectId
    companyName: str
    timezone: str
    loadUnit: LoadUnit
    hasStoredLoads: bool
    notifications: AccountNotifications
    attention: NotRequired[AttentionSettings]
    clientsMayImport: NotRequired[bool]
    clientsMayMove: NotRequired[bool]
    clientsMayAdd: NotRequired[bool]


def read_account(reader: ArchiveReader) -> AccountSettings:
    """Return the account of an export. Raises InvalidArchive if it is not valid."""
    try:
        settings: AccountSettings = converter_of(AccountSettings)(
            reader.read_object(ACCOUNT), "", lambda identifier, _: identifier
        )
    except InvalidFields as error:
        raise InvalidArchive(f"{error.errors[0]['field']} {error.errors[0]['message']}", ACCOUNT) from None
    problems = input_of(AccountDetails)().validate(_change_of(settings))
    if problems:
        raise InvalidArchive(f"{next(iter(problems))} is not valid", ACCOUNT)
    return settings


def _change_of(settings: AccountSettings) -> Any:
    return take(AccountDetails, settings)


async def apply_account(ctx: Context, settings: AccountSettings, *, is_dry_run: bool) -> None:
    """Take over the settings into an empty company, in the caller's transaction; one with clients keeps its own.

    Raises Conflict if the export has loads in another unit than the company's.
    """
    current = await account.get(ctx)
    is_empty = not await customers.has_any(ctx)
    if is_empty and not await account.has_stored_loads(ctx):
        if not is_dry_run:
            await account.update(ctx, _change_of(settings))
    elif settings["hasStoredLoads"] and settings["loadUnit"] != current["loadUnit"]:
        raise Conflict(f"has loads in {settings['loadUnit']}, and the company has loads in {current['loadUnit']}")
    if settings["hasStoredLoads"] and not is_dry_run:
        await account.lock_stored_unit(ctx)
    if not is_dry_run:
        await account.record_overrides(ctx)  # the export may have some

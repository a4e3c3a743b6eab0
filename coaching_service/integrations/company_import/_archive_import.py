"""Importing an export: first the whole file is checked, then its collections are stored one after another."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import InitVar, dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from types import UnionType
from typing import IO, Any, Literal, NotRequired, TypedDict, Union, cast, get_args, get_origin, is_typeddict

import orjson

from coaching_service.core.database import declared as database_declarations
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, DocumentExists
from coaching_service.core.database.documents import Documents
from coaching_service.core.dates import YEARS
from coaching_service.core.errors import Conflict, InvalidFields, invalid_field
from coaching_service.core.fields import Declaration, declarations_of, input_of, plain_type, take
from coaching_service.core.ids import NameOrId, ObjectId, parse_id
from coaching_service.core.media import DecodingFailed, InvalidFile
from coaching_service.integrations import company_export
from coaching_service.integrations.company_import._archive_reader import (
    Accepted,
    ArchiveReader,
    IdMap,
    ReferenceCheck,
    referred_to,
)
from coaching_service.integrations.history_import.importing import Progress
from coaching_service.integrations.history_import.models import ImportRefused
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import service as exercises
from coaching_service.library.metric_sets import UNITS
from coaching_service.people import account, team
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import models
from coaching_service.people.jobs import JobError

# --- Reading JSON into the type of a stored document: identifiers, times, and no fields that the type does not have -
# The TypedDict of a stored document is the only description that an import needs of it.


MAX_TEXT = 50_000
MAX_ENTRIES = 1_000
_MAX_NUMBER = 1e12
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}", re.ASCII)

# Returns the identifier to store in place of one that was read at a path.
MapId = Callable[[ObjectId, str], ObjectId]


def convert(hint: Any, value: Any, path: str, map_id: MapId) -> Any:
    """Convert a JSON value to `hint`: a TypedDict, a type of JSON, ObjectId, datetime, or made of these.

    Raises InvalidFields, with the path of the value, if it does not have the type; TypeError for other types.
    """
    hint = plain_type(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _SCALARS:
        return _SCALARS[hint](value, path, map_id)
    if is_typeddict(hint):
        return convert_fields(declarations_of(hint).values(), value, path, map_id)
    if origin in (Union, UnionType):
        return _convert_union(arguments, value, path, map_id)
    if origin is Literal:
        if not isinstance(value, str | int) or value not in arguments:
            raise _error(path, f"must be one of: {', '.join(map(str, arguments))}", "INVALID_CHOICE")
        return value
    if origin in (list, Sequence, tuple):
        return _convert_list(arguments[0], value, path, map_id)
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise _error(path, "must be an object", "NOT_AN_OBJECT")
        choices = get_args(arguments[0]) if get_origin(arguments[0]) is Literal else value
        if not all(_NAME.fullmatch(key) and key in choices for key in value):
            raise _error(path, "has a field that is not known", "UNKNOWN_FIELD")
        return {key: convert(arguments[1], entry, f"{path}.{key}", map_id) for key, entry in value.items()}
    raise TypeError(f"{hint} cannot be read from JSON")


def convert_fields(fields: Iterable[Declaration], value: Any, path: str, map_id: MapId) -> dict[str, Any]:
    """Convert an object to a document with these fields, as `convert` does.

    A field that may be None and is absent becomes None; those that are not in `fields` are left out.
    """
    if not isinstance(value, dict):
        raise _error(path, "must be an object", "NOT_AN_OBJECT")
    converted: dict[str, Any] = {}
    for each in fields:
        field_path = f"{path}.{each.name}" if path else each.name
        if each.name in value:
            converted[each.name] = convert(each.hint, value[each.name], field_path, map_id)
        elif each.is_required and not each.is_nullable:
            raise _error(field_path, "is required", "REQUIRED")
        elif each.is_required:
            converted[each.name] = None
    return converted


def _convert_union(members: Sequence[Any], value: Any, path: str, map_id: MapId) -> Any:
    """Return a value of the first member that fits; of several TypedDicts by the `type` of the value."""
    if len(tagged := [member for member in members if is_typeddict(member)]) > 1:
        by_type = {get_args(declarations_of(member)["type"].hint)[0]: member for member in tagged}
        tag = value.get("type") if isinstance(value, dict) else None
        if not isinstance(tag, str) or tag not in by_type:
            raise _error(f"{path}.type", f"must be one of: {', '.join(by_type)}", "INVALID_CHOICE")
        return convert(by_type[tag], value, path, map_id)
    if value is None and type(None) in members:
        return None
    failures = []
    for member in members:
        if member is not type(None):
            try:
                return convert(member, value, path, map_id)
            except InvalidFields as failure:
                failures.append(failure)
    raise failures[0]


def _convert_list(hint: Any, value: Any, path: str, map_id: MapId) -> list[Any]:
    if not isinstance(value, list):
        raise _error(path, "must be an array", "NOT_AN_ARRAY")
    if len(value) > MAX_ENTRIES:
        raise _error(path, f"must not hold more than {MAX_ENTRIES} entries", "TOO_MANY")
    return [convert(hint, entry, f"{path}.{number}", map_id) for number, entry in enumerate(value)]


def _error(path: str, message: str, code: str) -> InvalidFields:
    return invalid_field(path or "record", message, code=code)


def _convert_text(value: Any, path: str, _: MapId) -> str:
    if not isinstance(value, str):
        raise _error(path, "must be a string", "NOT_A_STRING")
    if len(value) > MAX_TEXT:
        raise _error(path, f"must not be longer than {MAX_TEXT} characters", "TOO_LONG")
    if _CONTROL.search(value):
        raise _error(path, "must not contain control characters", "CONTROL_CHARACTERS")
    return value


def _accepting(accepts: Callable[[Any], bool], message: str, code: str) -> Callable[[Any, str, MapId], Any]:
    """Return the converter of values that stay as they are."""

    def convert_value(value: Any, path: str, _: MapId) -> Any:
        if not accepts(value):
            raise _error(path, message, code)
        return value

    return convert_value


def _is_number(value: Any, types: type | UnionType, most: float) -> bool:
    # A comparison with NaN is false.
    return isinstance(value, types) and not isinstance(value, bool) and abs(value) <= most  # type: ignore[arg-type]  # a number


def _convert_identifier(value: Any, path: str, map_id: MapId) -> ObjectId:
    if (identifier := parse_id(value)) is None:
        raise _error(path, "must be an identifier of 24 hexadecimal characters", "INVALID_ID")
    return map_id(identifier, path)


def _convert_name_or_identifier(value: Any, path: str, map_id: MapId) -> str:
    identifier = parse_id(value)
    return _convert_text(value, path, map_id) if identifier is None else str(map_id(identifier, path))


def _convert_time(value: Any, path: str, _: MapId) -> datetime:
    try:
        time = datetime.fromisoformat(value)
        utc = time.astimezone(UTC) if time.tzinfo else time
    except (TypeError, ValueError, OverflowError):
        raise _error(path, "must be a time such as 2026-03-02T08:30:00Z", "INVALID_TIME") from None
    if utc.year not in YEARS:
        raise _error(path, f"must be in the years {YEARS[0]} to {YEARS[-1]}", "INVALID_TIME")
    return utc.replace(tzinfo=None, microsecond=utc.microsecond // 1000 * 1000)


def _convert_any(value: Any, path: str, map_id: MapId) -> Any:
    """Return a value that may be anything simple: the answer to a question."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return _convert_list(str, value, path, map_id)
    return convert(float if isinstance(value, int | float) else str, value, path, map_id)


_convert_none = _accepting(lambda value: value is None, "must be null", "NOT_NULL")
_SCALARS: dict[Any, Callable[[Any, str, MapId], Any]] = {
    str: _convert_text,
    float: _accepting(lambda value: _is_number(value, int | float, _MAX_NUMBER), "must be a number", "NOT_A_NUMBER"),
    int: _accepting(lambda value: _is_number(value, int, 2**53), "must be an integer", "NOT_AN_INTEGER"),
    NameOrId: _convert_name_or_identifier,
    bool: _accepting(lambda value: isinstance(value, bool), "must be a boolean", "NOT_A_BOOLEAN"),
    ObjectId: _convert_identifier,
    datetime: _convert_time,
    type(None): _convert_none,
    None: _convert_none,
    Any: _convert_any,
}


# --- Storing the records of an export in batches, each in one transaction with the progress of the import -------------


BATCH = 200
_IN_IMPORTS = {"DATE_OUT_OF_RANGE": "INVALID_DATE"}  # as rows of other files report it
_FILES = 4  # of one transaction: storing them takes time, and the lease of the job is a minute


@dataclass
class _Record:
    """A line of an entry: the document to store, unless it is not valid, and its problems: field, code, message."""

    line: int
    document: dict[str, Any] | None = None
    files: list[files.StoredFile] = field(default_factory=list)
    problems: list[tuple[str | None, str, str]] = field(default_factory=list)

    def reject(self, field_path: str | None, code: str, message: str) -> None:
        """Leave the record out."""
        self.document = None
        self.problems.append((field_path, code, message))


@dataclass
class RecordImport:
    """Imports one entry with records, from the position of the import."""

    _progress: Progress
    _reader: ArchiveReader
    _name: str
    _collection: Documents[Any]
    _portable: database_declarations.Portable
    _map_id: IdMap
    _references: ReferenceCheck
    _accepted: Accepted | None
    start: InitVar[int]

    def __post_init__(self, start: int) -> None:
        """Begin with the line `start`."""
        self._entry = company_export.records_entry(self._name)
        self._lines = self._reader.lines(self._entry, start)

    async def run_batch(self) -> bool:
        """Import the next records; returns False if there are none left. Raises ImportRefused, Superseded."""
        records = await asyncio.to_thread(self._read)
        if not records:
            return False
        await self._check_references(records)
        for part in _parts(records, self._portable):
            await self._store(part)
        return True

    async def repeat(self, accepted: Accepted, number: int, end: int | None) -> None:
        """Find out again what a dry run has accepted of this entry, the `number`th, before the line `end` if given.

        Files are not checked again: no record refers to one that is left out because of its file.
        """
        while records := [each for each in await asyncio.to_thread(self._read) if end is None or each.line < end]:
            await self._check_references(records)
            await self._reject_collisions(accepted, records)
            documents = [record.document for record in records if record.document is not None]
            accepted.add(self._collection, documents, (number, records[-1].line + 1))

    def _read(self) -> list[_Record]:
        """Read and validate the next records."""
        records = []
        for line, text in islice(self._lines, BATCH):
            records.append(record := _Record(line))
            try:
                record.document = self._convert(orjson.loads(text))
            except orjson.JSONDecodeError:
                record.reject(None, "MALFORMED_JSON", "is not JSON")
            except InvalidFields as error:
                record.reject(error.errors[0]["field"], error.errors[0]["code"], error.errors[0]["message"])
        return records

    def _convert(self, record: Any) -> dict[str, Any]:
        """Return the document to store for a record. Raises InvalidFields if the service could not have stored it."""
        declared = self._portable.exported_fields.values()
        fields = (replace(each, is_required=False) if each.name == "updatedAt" else each for each in declared)
        document = convert_fields(fields, record, "", self._map_id)
        for errors in database_declarations.find_invalid(document, self._portable.all_checks):
            raise InvalidFields([{**each, "code": _IN_IMPORTS.get(each["code"], each["code"])} for each in errors])
        return self._portable.complete(document)

    async def _check_references(self, records: Sequence[_Record]) -> None:
        await self._references.load(self._portable, [each.document for each in records if each.document is not None])
        for record in records:
            if record.document is None:
                continue
            path = self._references.find_missing(self._portable, record.document)
            if path is not None:
                record.reject(path, "REFERENCE_MISSING", "refers to a record that was not imported")

    async def _reject_collisions(self, accepted: Accepted, records: Sequence[_Record]) -> None:
        documents = [record.document for record in records]
        collisions = await accepted.find_collisions(self._progress.ctx, self._collection, documents)
        for number, error in collisions.items():
            records[number].reject(error.field, DocumentExists.default_code, str(error.message))

    async def _store(self, records: Sequence[_Record]) -> None:
        async with AsyncExitStack() as stack:
            for record in records:
                async with AsyncExitStack() as checked:  # of a dry run: its files are deleted again
                    await self._store_files(record, checked if self._progress.is_dry_run else stack)
            if self._accepted is not None:
                await self._reject_collisions(self._accepted, records)
            try:
                await self._commit(records)
            except DocumentExists:  # its transaction is over: find out which record it was
                for record in records:
                    try:
                        await self._commit([record])
                    except DocumentExists as error:
                        record.reject(error.field, DocumentExists.default_code, str(error.message))
                        await self._commit([record])

    async def _store_files(self, record: _Record, stack: AsyncExitStack) -> None:
        """Store the files of a record like uploads, before its transaction, and put their identifiers into it.

        A file that is missing or not accepted is taken out of the document; if the document is about that file, it is
        left out. Files that no record has attached when `stack` is closed are deleted. Raises ImportRefused.
        """
        if (document := record.document) is None or (rule := self._portable.files) is None:
            return
        ctx, client_field = self._progress.ctx, self._collection.client_field
        limits, is_dry_run = ctx.services.upload_limits, self._progress.is_dry_run
        customer_id: ObjectId | None = document[client_field] if client_field and not is_dry_run else None
        for holder in list(database_declarations.file_holders(document)):
            problem: str | None = "the file is missing in the archive, or too large"
            with self._reader.open_file(holder["fileId"], limits.max_bytes(rule.size_limit)) as archived:
                if archived is not None:
                    storage = files.storing(
                        ctx,
                        archived[1],
                        name=archived[0],
                        content_types=rule.content_types,
                        customer_id=customer_id,
                        max_pixels=limits.photo_pixels,
                    )
                    try:
                        file = await stack.enter_async_context(storage)
                        problem = None
                    except InvalidFile as error:
                        problem = f"the file {error.message}"
                    except DecodingFailed:
                        problem = "the picture could not be decoded: it took too long, or the decoder failed"
            if problem is not None:
                record.problems.append(("fileId", "INVALID_FILE", problem))
                _remove(document, holder)
                continue
            record.files.append(file)
            known = {"contentType": file.content_type, "size": file.size}
            holder |= {name: value for name, value in known.items() if name in holder}
            holder |= {"fileId": file.id, "thumbnailId": file.thumbnail_id}
        if "fileId" in self._portable.exported_fields and "fileId" not in document:
            record.document = None

    async def _commit(self, records: Sequence[_Record]) -> None:
        documents = [record.document for record in records if record.document is not None]
        errors: list[JobError] = [
            {"entry": f"{self._entry}:{record.line + 1}", "field": field_path, "code": code, "message": message}
            for record in records
            for field_path, code, message in record.problems
        ]
        position = (self._progress.position[0], records[-1].line + 1)

        async def write(tx: Context) -> None:
            if documents and not self._progress.is_dry_run:
                await self._collection.import_many(tx, documents)
                if self._portable.after is not None:
                    await self._portable.after(tx, documents)
                for record in records:
                    for file in record.files if record.document is not None else ():
                        await files.attach(tx, file)

        await self._progress.advance(position, len(records), {self._name: len(documents)}, errors, write)
        if self._accepted is not None:
            self._accepted.add(self._collection, documents, position)


def _parts(records: Sequence[_Record], portable: database_declarations.Portable) -> Iterator[Sequence[_Record]]:
    """Divide records into parts of few files."""
    if portable.files is None:
        yield records
        return
    part: list[_Record] = []
    count = 0
    for record in records:
        own = len(list(database_declarations.file_holders(record.document)))
        if part and count + own > _FILES:
            yield part
            part, count = [], 0
        part.append(record)
        count += own
    if part:
        yield part


def _remove(document: dict[str, Any], holder: dict[str, Any]) -> None:
    """Take an object out of the document that contains it."""
    if holder is document:
        del document["fileId"]
        return
    for name, value in document.items():
        if value is holder:
            document[name] = None
        elif isinstance(value, list):
            document[name] = [entry for entry in value if entry is not holder]
        elif isinstance(value, dict):
            document[name] = {key: entry for key, entry in value.items() if entry is not holder}


_MAX_COACHES = 10_000
_MAX_UNKNOWN = 10


class AccountSettings(TypedDict):
    """The account of an export."""

    _id: ObjectId
    companyName: str
    timezone: str
    loadUnit: account.LoadUnit
    hasStoredLoads: bool
    notifications: account.AccountNotifications
    attention: NotRequired[account.AttentionSettings]
    clientsMayImport: NotRequired[bool]
    clientsMayMove: NotRequired[bool]
    clientsMayAdd: NotRequired[bool]


def _read_account(reader: ArchiveReader) -> AccountSettings:
    """Return the account of an export. Raises ImportRefused if it is not valid."""
    try:
        account_of_export = reader.read_object(company_export.ACCOUNT)
        settings: AccountSettings = convert(AccountSettings, account_of_export, "", lambda identifier, _: identifier)
    except InvalidFields as error:
        raise ImportRefused(
            f"{error.errors[0]['field']} {error.errors[0]['message']}", company_export.ACCOUNT
        ) from None
    problems = input_of(account.AccountDetails)().validate(take(account.AccountDetails, settings))
    if problems:
        raise ImportRefused(f"{next(iter(problems))} is not valid", company_export.ACCOUNT)
    return settings


class ArchiveImport:
    """An import of an export."""

    def __init__(self, progress: Progress, reader: ArchiveReader, map_id: IdMap, problems: list[JobError]) -> None:
        self._progress, self._reader, self._map_id, self._problems = progress, reader, map_id, problems
        self._current: tuple[int, RecordImport] | None = None
        self._collections = company_export.portable_collections()
        self._accepted: Accepted | None = None
        if progress.is_dry_run:
            lasting = referred_to([portable for *_, portable in self._collections])
            self._accepted = Accepted(lasting)
        self._references = ReferenceCheck(progress.ctx, self._accepted)

    @classmethod
    async def open(cls, progress: Progress, file: IO[bytes]) -> ArchiveImport:
        """Read the directory of an export. Raises ImportRefused."""
        reader = await asyncio.to_thread(ArchiveReader, file)
        fixed, authors, problems = await _find_fixed_ids(progress.ctx, reader)
        map_id = IdMap(progress.work["seed"], fixed, authors)
        return cls(progress, reader, map_id, problems)

    async def prepare(self) -> AsyncIterator[int]:
        """Check the whole file, count its records, and take over the settings of the account.

        Raises ImportRefused, also if its loads are in another unit than the company's.
        """
        if self._progress.work["isStarted"]:
            return
        yield 0
        known = {name for name, *_ in self._collections}
        for name in self._reader.collections:
            if name not in known:
                self._report(company_export.records_entry(name), "is not a collection of this version")
        for entry in self._reader.unknown[:_MAX_UNKNOWN]:
            self._report(entry[:200], "is not part of an export and is left out")
        lists = [company_export.records_entry(name) for name, *_ in self._collections]
        total = await asyncio.to_thread(self._reader.check, lists)
        settings = _read_account(self._reader)
        is_dry_run = self._progress.is_dry_run

        async def write(tx: Context) -> None:
            """Take over the settings into an empty company; one with clients keeps its own."""
            current = await account.get_account(tx)
            is_empty = not await customers.has_any(tx)
            if is_empty and not await account.has_stored_loads(tx):
                if not is_dry_run:
                    await account.update_account(tx, cast("Any", take(account.AccountDetails, settings)))
            elif settings["hasStoredLoads"] and settings["loadUnit"] != current["loadUnit"]:
                unit = current["loadUnit"]
                raise Conflict(f"has loads in {settings['loadUnit']}, and the company has loads in {unit}")
            if settings["hasStoredLoads"] and not is_dry_run:
                await account.lock_stored_unit(tx)
            if not is_dry_run:
                await account.record_overrides(tx)  # the export may have some

        try:
            await self._progress.start(total, write, self._problems)
        except (Conflict, InvalidFields) as error:
            raise ImportRefused(str(error.message), company_export.ACCOUNT) from None

    def _report(self, entry: str, message: str) -> None:
        self._problems.append({"entry": entry, "field": None, "code": "INVALID_FILE", "message": message})

    async def run_batch(self) -> bool:
        """Import the next records; returns False if there are none left. Raises ImportRefused, Superseded."""
        accepted, end = self._accepted, self._progress.position
        if accepted is not None and accepted.position < end:
            # Find out again what the dry run has accepted up to the position of its job: another process did that.
            while accepted.position < end:
                number, start = accepted.position
                is_last = number == end[0]
                if self._reader.has(company_export.records_entry(self._collections[number][0])):
                    await self._import_of(number, start).repeat(accepted, number, end[1] if is_last else None)
                accepted.move(end if is_last else (number + 1, 0))
            self._reader.reset_limit()
        while (number := self._progress.position[0]) < len(self._collections):
            if self._reader.has(company_export.records_entry(self._collections[number][0])):
                if self._current is None or self._current[0] != number:
                    self._current = (number, self._import_of(number, self._progress.position[1]))
                if await self._current[1].run_batch():
                    return True
            await self._progress.advance((number + 1, 0))
            if self._accepted is not None:
                self._accepted.move((number + 1, 0))
        return False

    def _import_of(self, number: int, start: int) -> RecordImport:
        name, collection, portable = self._collections[number]
        shared = (self._map_id, self._references, self._accepted)
        return RecordImport(self._progress, self._reader, name, collection, portable, *shared, start)


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
    fixed = {identifier: identifier for identifier in (*exercise_models.MUSCLE_NAMES, *UNITS, *shared)}
    account = reader.read_object(company_export.ACCOUNT)
    if (company_id := parse_id(account.get("_id"))) is not None:
        fixed[company_id] = ctx.company_id
    own = {models.account_key(coach["email"]): coach["_id"] for coach in await team.list_coaches(ctx)}
    authors: dict[ObjectId, ObjectId] = {}
    problems: list[JobError] = []
    for number, coach in enumerate(await asyncio.to_thread(_read_coaches, reader), 1):
        coach_id, email = parse_id(coach.get("_id")), coach.get("email")
        same = own.get(models.account_key(str(email)))
        target = ctx.caller.id if coach.get("role") == "OWNER" else same
        if coach_id is not None and same is not None:
            authors[coach_id] = same
        if coach_id is not None and target is not None:
            fixed[coach_id] = target
        else:
            message = "is not the e-mail address of a coach of the company: clients of this coach have no trainer"
            problems.append(
                {
                    "entry": f"{company_export.COACHES}:{number}",
                    "field": "email",
                    "code": "COACH_NOT_FOUND",
                    "message": message,
                }
            )
    return fixed, authors, problems


def _read_coaches(reader: ArchiveReader) -> list[dict[str, Any]]:
    if not reader.has(company_export.COACHES):
        return []
    coaches: list[dict[str, Any]] = []
    for line, text in reader.lines(company_export.COACHES):
        try:
            coach = orjson.loads(text)
        except orjson.JSONDecodeError:
            coach = None
        if not isinstance(coach, dict) or line >= _MAX_COACHES:
            raise ImportRefused("is not a list of coaches", company_export.COACHES)
        coaches.append(coach)
    return coaches

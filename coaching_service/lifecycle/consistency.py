"""Checks of stored documents, files and secrets, and the removal of files without a record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, is_typeddict

from coaching_service.core import idempotency
from coaching_service.core.database import files
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences, check_of
from coaching_service.core.database.context import Context, Services, in_transaction, reading_snapshot
from coaching_service.core.database.declared import FILE_FIELDS, Portable, file_holders, find_invalid, values_at
from coaching_service.core.database.documents import Document, now, registry
from coaching_service.core.fields import checks_of, declarations_of, plain_type
from coaching_service.core.ids import NameOrId, ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from coaching_service.people import api_keys, push, second_factor
from coaching_service.people.account import ERASE
from coaching_service.people.webhooks import service as webhooks

# --- Documents of all companies in batches, and those of a batch that are wrong and not being erased ------------------


BATCH = 500
# Returns those of some documents that seem wrong; the last argument is a session, or None.
FindWrong = Callable[[Services, Sequence[Document], Any], Awaitable[Sequence[Document]]]


async def iterate_batches(
    services: Services, name: str, fields: Document | None = None
) -> AsyncIterator[list[Document]]:
    """Yield the documents of a collection, all fields or only some, in batches."""
    cursor = services.collection(name).find({}, fields, batch_size=BATCH)
    while batch := await cursor.to_list(BATCH):
        yield batch


async def list_wrong(services: Services, name: str, batch: Sequence[Document], find: FindWrong) -> list[ObjectId]:
    """Return the documents in a batch that `find` returns again at one moment, and that are not being erased."""
    if not (suspects := await find(services, batch, None)):
        return []
    async with reading_snapshot(services) as session:
        where = {"_id": {"$in": [document["_id"] for document in suspects]}}
        documents = await services.collection(name).find(where, session=session).to_list(None)
        wrong = await find(services, documents, session)
    erasing = await find_erasing(services) if wrong else set()
    client = registry[name].client_field or "companyId"
    return [each["_id"] for each in wrong if erasing.isdisjoint((each.get(client), each.get("companyId")))]


async def _find_wrong(
    services: Services, count_read: CountRead, name: str, find: FindWrong, fields: Document | None = None
) -> Occurrences:
    """Return the documents of a collection that `list_wrong` returns."""
    occurrences = Occurrences()
    async for batch in iterate_batches(services, name, fields):
        for identifier in await list_wrong(services, name, batch, find):
            occurrences.add(identifier)
        count_read(len(batch))
    return occurrences


async def find_erasing(services: Services) -> set[ObjectId]:
    """Return the clients and companies whose erasure is queued: some of their documents are gone until it is done."""
    erasing = set()
    async for arguments in worker.iterate_arguments(services, (ERASE_CUSTOMER, ERASE)):
        erasing.add(arguments.get("customerId") or arguments["companyId"])
    return erasing


_COMPANIES = "companies"
_ADVICE = "Restore the documents from a backup, or correct them by hand: the service stores no such documents"
_SIGN_INS = ("identities", "identityClaims", "passwordResets")
_BY_ITEM = "companyId_customerId_items__id"
_CONTENTS = (("formId", "forms"), ("metricsSetId", "metricSets"))
_FIELDS = {"companyId": 1, "role": 1, "kind": 1, "subjectId": 1}
_USERS = {"coach": "coaches", "customer": "customers"}


# --- Fields ----------------------------------------------------------------------------------------------------------


async def find_misshapen(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find documents that lack a declared field, or have one with a value of another type or that is not valid."""
    for name, collection in registry.items():
        if not is_typeddict(collection.model):
            continue
        transfer, occurrences = collection.transfer, dict[str, Occurrences]()
        checks = transfer.all_checks if isinstance(transfer, Portable) else checks_of(collection.model)
        async for batch in iterate_batches(services, name):
            for document in batch:
                problems = {*mismatches(collection.model, document, "")}
                if not problems:  # the declared checks are of values of the right type
                    invalid = (each for errors in find_invalid(document, checks) for each in errors)
                    problems = {f"{each['field']} {each['message']}" for each in invalid}
                for problem in problems:
                    occurrences.setdefault(problem, Occurrences()).add(document["_id"])
            count_read(len(batch))
        for problem, occurrence in sorted(occurrences.items()):
            yield occurrence.finding(f"Documents of {name} whose {problem}", _ADVICE)


# --- References ------------------------------------------------------------------------------------------------------


async def find_broken(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find documents that refer to a document that does not exist, or is of another company.

    The references are those that collections declare for their export.
    """
    for name, collection in registry.items():
        transfer = collection.transfer
        targets = {**transfer.references, **transfer.optional_references} if isinstance(transfer, Portable) else {}
        if not targets:
            continue
        occurrences = {path: Occurrences() for path in targets}
        fields: Document = {"companyId": 1, **dict.fromkeys(targets, 1)}
        if collection.client_field:
            fields[collection.client_field] = 1
        async for batch in iterate_batches(services, name, fields):
            for path, target in targets.items():
                for identifier in await list_wrong(services, name, batch, partial(_broken, path, target)):
                    occurrences[path].add(identifier)
            count_read(len(batch))
        for path, broken in occurrences.items():
            problem = f"Documents of {name} whose {path} is not in {targets[path]}"
            advice = f"Restore the documents of {targets[path]} from a backup, or delete or correct {name}"
            yield broken.finding(problem, advice)


async def _broken(
    path: str, target: str, services: Services, documents: Sequence[Document], session: Any
) -> list[Document]:
    names = path.split(".")
    values = {each["_id"]: {value for value in values_at(each, names) if value is not None} for each in documents}
    wanted = list(set[ObjectId]().union(*values.values()))
    cursor = services.collection(target).find({"_id": {"$in": wanted}}, {"companyId": 1}, session=session)
    # Documents of a shared library have no company.
    companies = {each["_id"]: each["companyId"] async for each in cursor}

    def is_broken(document: Document) -> bool:
        own = (None, document["companyId"])
        return any(value not in companies or companies[value] not in own for value in values[document["_id"]])

    return [document for document in documents if is_broken(document)]


async def find_without_company(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find documents of companies that do not exist."""
    for name, collection in registry.items():
        if collection.by_company is None or name == _COMPANIES:
            continue
        stages: list[Document] = [
            {"$match": {"companyId": {"$ne": None}}},
            {"$group": {"_id": "$companyId", "count": {"$sum": 1}}},
            {"$lookup": {"from": _COMPANIES, "localField": "_id", "foreignField": "_id", "as": "company"}},
            {"$match": {"company": []}},
        ]
        occurrences = Occurrences()
        cursor = services.collection(name).aggregate(stages, hint=collection.by_company, allowDiskUse=True)
        suspects = {each["_id"]: each["count"] async for each in cursor}
        if suspects:
            async with reading_snapshot(services) as session:
                where = {"_id": {"$in": list(suspects)}}
                existing = services.collection(_COMPANIES).find(where, {"_id": 1}, session=session)
                gone = suspects.keys() - {company["_id"] async for company in existing}
            for company_id in gone - await find_erasing(services):
                name_of_company = company_id if isinstance(company_id, ObjectId) else "a value that is no identifier"
                occurrences.add(name_of_company, suspects[company_id])
        count_read(1)
        advice = "Restore the company from a backup, or delete its documents. The example is the company's identifier"
        yield occurrences.finding(f"Documents of {name} whose company does not exist", advice)


# --- What follows from other documents -------------------------------------------------------------------------------


async def find_records_without_log(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find personal records that were derived from a log which does not exist."""
    occurrences = await _find_wrong(services, count_read, "personalRecords", _without_log)
    advice = "Restore the workouts from a backup, or delete these records"
    yield occurrences.finding("Personal records without the log that they are derived from", advice)


async def _without_log(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    derived = [each for each in documents if each.get("source") == "log"]
    where: Document = {name: {"$in": list({each[name] for each in derived})} for name in ("companyId", "customerId")}
    where["items._id"] = {"$in": [each["witemId"] for each in derived]}
    fields = {"items._id": 1, "items.customerSets.index": 1}
    cursor = services.collection("workoutBlocks").find(where, fields, session=session, hint=_BY_ITEM)
    logged = {item["_id"] async for block in cursor for item in block["items"] if item.get("customerSets")}
    return [each for each in derived if each["witemId"] not in logged]


async def find_check_ins_without_form(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find check-ins whose form or metric set has been deleted, so that none is scheduled any more."""

    async def find(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
        return [each for fields in _CONTENTS for each in await _broken(*fields, services, documents, session)]

    occurrences = await _find_wrong(services, count_read, "checkIns", find)
    advice = "If the form or metric set was deleted on purpose, end the check-ins; else restore it from a backup"
    yield occurrences.finding("Check-ins whose form or metric set does not exist", advice, is_notice=True)


# --- Identities ------------------------------------------------------------------------------------------------------


async def find_without_user(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find identities, claims and resets of coaches and clients that do not exist, or are of another company."""
    for name in _SIGN_INS:
        occurrences = await _find_wrong(services, count_read, name, _without_user, _FIELDS)
        problem = f"Documents of {name} whose coach or client does not exist"
        advice = "Restore the coach or client from a backup, or delete these documents: the address is in use by them"
        yield occurrences.finding(problem, advice)


async def find_without_identity(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find coaches who have no identity, so that they cannot sign in.

    A confirmed address displaces an unconfirmed one, so only the owner of a company that is confirmed must have one.
    Clients have none before their first access, and clients of an import had theirs in another company.
    """
    owners, employees = Occurrences(), Occurrences()
    async for batch in iterate_batches(services, "coaches", _FIELDS):
        missing = set(await list_wrong(services, "coaches", batch, _without_identity))
        exempt = set()
        if missing:
            where = {"_id": {"$in": [coach["companyId"] for coach in batch]}, "holdsMail": True}
            exempt = {each["_id"] async for each in services.collection("companies").find(where, {"_id": 1})}
        for coach in batch:
            if coach["_id"] in missing:
                is_owner = coach.get("role") == "OWNER" and coach["companyId"] not in exempt
                (owners if is_owner else employees).add(coach["_id"])
        count_read(len(batch))
    lost = "Restore the identity from a backup. Without one, set a password with `admin`, or create the company again"
    again = "Their address was confirmed by another user, or the identity is lost: invite them again"
    yield owners.finding("Owners who cannot sign in", lost)
    yield employees.finding("Coaches who cannot sign in", again, is_notice=True)


async def _without_user(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    by_kind = defaultdict(list)
    for document in documents:
        by_kind[document.get("kind")].append(document["subjectId"])
    users = set()
    for kind, identifiers in by_kind.items():
        if kind in _USERS:
            where = {"_id": {"$in": identifiers}}
            cursor = services.collection(_USERS[kind]).find(where, {"companyId": 1}, session=session)
            users |= {(kind, each["companyId"], each["_id"]) async for each in cursor}
    return [each for each in documents if (each.get("kind"), each["companyId"], each["subjectId"]) not in users]


async def _without_identity(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    where: Document = {"subjectId": {"$in": [document["_id"] for document in documents]}}
    subjects = set()
    for name in ("identities", "identityClaims"):
        cursor = services.collection(name).find(where, {"companyId": 1, "subjectId": 1}, session=session)
        subjects |= {(each["companyId"], each["subjectId"]) async for each in cursor}
    missing = [each for each in documents if (each["companyId"], each["_id"]) not in subjects]
    where = {"_id": {"$in": [each["companyId"] for each in missing]}, "sandboxOf": {"$ne": None}}
    cursor = services.collection("companies").find(where, {"_id": 1}, session=session)
    sandboxes = {each["_id"] async for each in cursor} if missing else set()
    return [each for each in missing if each["companyId"] not in sandboxes]


DOCUMENT_CHECKS = (
    Check("documents", "The fields of documents are as declared", find_misshapen),
    Check("references", "The documents that documents refer to exist", find_broken),
    Check("records", "The logs of personal records exist", find_records_without_log),
    Check("check-ins", "The forms of check-ins exist", find_check_ins_without_form),
    Check("companies", "The companies of documents exist", find_without_company),
    Check("identities", "The coaches and clients of identities exist", find_without_user),
    Check("sign-ins", "Coaches can sign in", find_without_identity),
)


# --- Comparing stored documents with the TypedDict that describes them ------------------------------------------------


def mismatches(hint: Any, value: Any, path: str) -> Iterator[str]:
    """Yield what is wrong with a stored value, and its path: `items.text is missing`.

    `hint`: a TypedDict, a type of BSON, or made of these. Entries of a list have the same path. Fields that a TypedDict
    does not have are ignored, like types that cannot be compared, such as Any.
    """
    hint = plain_type(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        if not isinstance(value, Mapping):
            yield f"{path or 'the document'} is not an object"
            return
        for each in declarations_of(hint).values():
            field_path = f"{path}.{each.name}" if path else each.name
            if each.name in value:
                yield from mismatches(each.hint, value[each.name], field_path)
            elif each.is_required:
                yield f"{field_path} is missing"
    elif origin in (Union, UnionType):
        yield from _compare_union(arguments, value, path)
    elif hint in _TYPES:
        accepted, name = _TYPES[hint]
        # A boolean is an integer in Python.
        if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
            yield f"{path} is not {name}"
    else:
        yield from _compare_with_generic(origin, arguments, value, path)


def _compare_with_generic(origin: Any, arguments: tuple[Any, ...], value: Any, path: str) -> Iterator[str]:
    if origin is Literal:
        if not isinstance(value, str | int) or value not in arguments:
            yield f"{path} is not one of: {', '.join(map(str, arguments))}"
    elif origin in (list, Sequence, tuple):
        if isinstance(value, list):
            for entry in value:
                yield from mismatches(arguments[0], entry, path)
        else:
            yield f"{path} is not a list"
    elif origin in (dict, Mapping):
        if isinstance(value, Mapping):
            for key, entry in value.items():
                yield from mismatches(arguments[0], key, f"{path} (a name in it)")
                yield from mismatches(arguments[1], entry, f"{path}.*")
        else:
            yield f"{path} is not an object"


_TYPES: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a text"),
    NameOrId: ((str,), "a text"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
    bytes: ((bytes,), "binary data"),
    ObjectId: ((ObjectId,), "an identifier"),
    datetime: ((datetime,), "a time"),
    type(None): ((type(None),), "null"),
}


def _compare_union(members: Sequence[Any], value: Any, path: str) -> Iterator[str]:
    """Compare a value with any member; with several TypedDicts by the `type` of the value."""
    if value is None and type(None) in members:
        return
    tagged = [member for member in members if is_typeddict(member) and "type" in declarations_of(member)]
    if len(tagged) > 1:
        by_type = {get_args(declarations_of(member)["type"].hint)[0]: member for member in tagged}
        if not isinstance(value, Mapping):
            yield f"{path} is not an object"
        elif isinstance(tag := value.get("type"), str) and tag in by_type:
            yield from mismatches(by_type[tag], value, path)
        else:
            yield f"{path}.type is not one of: {', '.join(by_type)}"
        return
    compared = [list(mismatches(member, value, path)) for member in members if member is not type(None)]
    if all(compared):
        yield from min(compared, key=len)


# --- Files in GridFS: their bytes, the records that refer to them, and what nothing refers to -------------------------


ORPHANED_AFTER = timedelta(days=1)
_IDS_IN_MEMORY = 200_000
_ATTACHED: Document = {"pending": {"$ne": True}}


def holding_collections() -> list[str]:
    """Return the names of the collections whose documents refer to files."""
    transfers = {name: each.transfer for name, each in registry.items()}
    exported = {name for name, each in transfers.items() if isinstance(each, Portable) and each.files is not None}
    return [name for name, each in registry.items() if each.has_files or name in exported]


def _file_ids(document: Document) -> set[ObjectId]:
    holders = file_holders(document)
    return {holder[name] for holder in holders for name in FILE_FIELDS if holder.get(name) is not None}


# --- Records whose file is missing -----------------------------------------------------------------------------------


async def find_missing_files(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find records that refer to a file that does not exist, or is not attached."""
    for name in holding_collections():
        occurrences = await _find_wrong(services, count_read, name, _without_file)
        advice = "Restore the files from a backup, or delete the records; their files cannot be downloaded"
        yield occurrences.finding(f"Records of {name} whose file is missing", advice)


async def _without_file(services: Services, documents: Sequence[Document], session: Any) -> list[Document]:
    ids = {document["_id"]: _file_ids(document) for document in documents}
    where = {"_id": {"$in": list(set().union(*ids.values()))}, **_ATTACHED}
    cursor = services.collection(files.files.name).find(where, {"_id": 1}, session=session)
    existing = {file["_id"] async for file in cursor}
    return [document for document in documents if not ids[document["_id"]] <= existing]


# --- Files whose bytes are missing -----------------------------------------------------------------------------------


async def find_missing_bytes(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find attached files that do not have all their bytes."""
    occurrences = Occurrences()
    async for batch in _attached_files(services, {}):
        count_read(len(batch))
        if suspects := await _incomplete(services, batch, session=None):
            async with reading_snapshot(services) as session:
                for identifier in await _incomplete(services, suspects, session):
                    occurrences.add(identifier)
    advice = "Restore the chunks from a backup: fs.chunks with this files_id"
    yield occurrences.finding("Files without all their bytes", advice)


async def _incomplete(services: Services, ids: Sequence[ObjectId], session: Any) -> list[ObjectId]:
    """Return which of the files exist and do not have as many chunks, numbered from 0, and bytes as their length needs.

    MongoDB counts the bytes: they do not leave it.
    """
    attached = services.collection(files.files.name).find(
        {"_id": {"$in": list(ids)}, **_ATTACHED}, {"length": 1, "chunkSize": 1}, session=session
    )
    expected: dict[ObjectId, tuple[int, int, int]] = {}
    async for file in attached:
        number = -(-file["length"] // file["chunkSize"])
        expected[file["_id"]] = (number, number - 1, file["length"])
    sums: Document = {"count": {"$sum": 1}, "last": {"$max": "$n"}, "bytes": {"$sum": {"$binarySize": "$data"}}}
    stages: list[Document] = [
        {"$match": {"files_id": {"$in": list(expected)}}},
        {"$group": {"_id": "$files_id", **sums}},
    ]
    cursor = services.collection(files.chunks.name).aggregate(stages, hint="files_id_n", session=session)
    stored = {each["_id"]: (each["count"], each["last"], each["bytes"]) async for each in cursor}
    return [key for key, wanted in expected.items() if stored.get(key, (0, -1, 0)) != wanted]


async def _attached_files(services: Services, where: Document, size: int = BATCH) -> AsyncIterator[list[ObjectId]]:
    """Iterate over the identifiers of attached files, in batches."""
    batch: list[ObjectId] = []
    cursor = services.collection(files.files.name).find({**where, **_ATTACHED}, {"_id": 1}, batch_size=BATCH)
    async for file in cursor:
        batch.append(file["_id"])
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


# --- Files that no record refers to ----------------------------------------------------------------------------------


async def find_unreferenced(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find attached files that no record refers to, a day after they were stored."""
    occurrences = Occurrences()
    async for ids in _unreferenced(services, count_read):
        for identifier in ids:
            occurrences.add(identifier)
    advice = "If no records are missing, run doctor --repair --delete-unreferenced-files; else restore the records"
    yield occurrences.finding("Files that no record refers to", advice)


async def delete_unreferenced(services: Services) -> None:
    """Delete attached files that no record refers to, a day after they were stored."""

    async def delete(tx: Context, ids: Sequence[ObjectId]) -> None:
        await services.collection(files.files.name).delete_many({"_id": {"$in": list(ids)}}, session=tx.session)
        await services.collection(files.chunks.name).delete_many({"files_id": {"$in": list(ids)}}, session=tx.session)

    async for unreferenced in _unreferenced(services, lambda _: None):
        ids = sorted(unreferenced)
        for start in range(0, len(ids), BATCH):
            await in_transaction(Context(services), partial(delete, ids=ids[start : start + BATCH]))


async def _unreferenced(services: Services, count_read: CountRead) -> AsyncIterator[set[ObjectId]]:
    """Iterate over the files without a record, in parts: each part reads all records, twice if it has such files.

    The files are read before the records, and a file is stored before its record. The second time the collections are
    read in reverse order, so that a file is not missed that was moved from one collection to another meanwhile.
    """
    is_old = {"uploadDate": {"$lt": now() - ORPHANED_AFTER}}
    names = holding_collections()
    async for batch in _attached_files(services, is_old, _IDS_IN_MEMORY):
        left = set(batch)
        for name in (*names, *reversed(names)):
            if not left:
                break
            async for document in services.collection(name).find({}, batch_size=BATCH):
                left -= _file_ids(document)
                count_read(1)
        ids = sorted(left)
        for start in range(0, len(ids), BATCH):
            where = {"_id": {"$in": ids[start : start + BATCH]}, **_ATTACHED}
            existing = services.collection(files.files.name).find(where, {"_id": 1})
            if confirmed := {file["_id"] async for file in existing}:
                yield confirmed


# --- Interrupted uploads ---------------------------------------------------------------------------------------------


async def find_orphaned_bytes(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find uploads that were interrupted over a day ago, and chunks without a file."""
    uploads, chunks = Occurrences(), Occurrences()
    async for ids in files.iterate_abandoned(services, older_than=ORPHANED_AFTER):
        count_read(len(ids))
        uploads.add(ids[0], len(ids))
    async for ids in files.iterate_chunks_without_file(services, older_than=ORPHANED_AFTER):
        count_read(len(ids))
        chunks.add(ids[0], len(ids))
    advice = "Run doctor --repair, or gc-files. The running service removes them every hour: see whether it runs jobs"
    yield uploads.finding("Interrupted uploads of over a day ago", advice)
    yield chunks.finding("Bytes without a file", "Run doctor --repair, or gc-files")


FILE_CHECKS = (
    Check("files-missing", "The files of records exist", find_missing_files),
    Check("files-bytes", "Files have all their bytes", find_missing_bytes),
    Check("files-unreferenced", "Files have a record", find_unreferenced, delete_unreferenced, deletes_files=True),
    Check(
        "files-orphaned",
        "No bytes are left of uploads",
        find_orphaned_bytes,
        lambda services: collect(services, remove=True, older_than=ORPHANED_AFTER),
    ),
)


# --- Files without a record, left by a process that ended between storing the two -------------------------------------


COLLECT = "collect_orphans"
_INTERVAL = timedelta(hours=1)


@dataclass
class OrphanReport:
    """The number of stored files, of those that no record names an hour after the upload (`orphans`), of groups of
    chunks without a file (`chunks_only`), and the bytes of both."""

    files: int = 0
    orphans: int = 0
    chunks_only: int = 0
    bytes: int = 0


async def collect(services: Services, *, remove: bool, older_than: timedelta = files.ABANDONED_AFTER) -> OrphanReport:
    """Report, and with `remove` delete, all files and chunks without a record; uploads of the last hour stay."""
    report = OrphanReport(files=await files.files.across_companies(services).estimated_document_count())

    async def release(ids: list[ObjectId]) -> int:
        report.bytes += await files.count_bytes(services, ids)
        if remove:
            await files.release(services, ids)
        return len(ids)

    async for ids in files.iterate_abandoned(services, older_than):
        report.orphans += await release(ids)
    async for ids in files.iterate_chunks_without_file(services, older_than):
        report.chunks_only += await release(ids)
    return report


async def collect_step(services: Services, job: Job) -> RunAgain:
    """Delete the files of uploads that began over an hour ago and that no record names, every hour."""
    del job
    async for ids in files.iterate_abandoned(services):
        await files.release(services, ids)
    return RunAgain(_INTERVAL)


# --- Stored secrets can be decrypted with the configured master keys --------------------------------------------------


_KEY_ADVICE = "Add the master key that they were encrypted with to SECRET_KEYS, after the newest"

SECRET_CHECKS = (
    check_of(
        "secrets-keys",
        "API keys can be read",
        api_keys.iterate_unreadable,
        "API keys that no master key opens",
        f"{_KEY_ADVICE}; if it is lost, revoke these keys and create new ones",
    ),
    check_of(
        "secrets-webhooks",
        "Webhooks can be read",
        webhooks.iterate_unreadable,
        "Webhooks that no master key opens",
        f"{_KEY_ADVICE}; if it is lost, delete these webhooks and create new ones",
    ),
    check_of(
        "secrets-push-keys",
        "Keys of Web Push can be read",
        push.iterate_unreadable_keys,
        "Keys of Web Push that no master key opens",
        f"{_KEY_ADVICE}; if it is lost, run: coaching-service admin push rotate-key",
    ),
    check_of(
        "secrets-push",
        "Addresses of devices can be read",
        push.iterate_unreadable,
        "Devices whose address no master key opens",
        f"{_KEY_ADVICE}; if it is lost, they subscribe again when they open a page",
    ),
    check_of(
        "secrets-second-factors",
        "Second factors can be read",
        second_factor.iterate_unreadable,
        "Authenticator applications whose secret no master key opens",
        f"{_KEY_ADVICE}; if it is lost, run for each user: coaching-service admin reset-second-factor",
    ),
    check_of(
        "secrets-responses",
        "Stored responses can be read",
        idempotency.iterate_unreadable,
        "Stored responses that no master key opens",
        f"{_KEY_ADVICE}, or wait: they expire after 24 hours, and until then repeated requests get 409",
    ),
)

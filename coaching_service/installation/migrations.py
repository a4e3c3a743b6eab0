"""Changes of the stored shape of documents between releases: numbered steps, each applied once.

To add a step, declare it at the end of its release. A step must be idempotent and resumable: it finds the documents
that still have the old shape, changes only those, and can be run again after an interruption or by two processes at the
same time. It uses collection and field names as they are stored at that release, and no code of the features, which
changes later. Its docstring says what the stored documents are like afterwards.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
import pymongo
import structlog
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError

from coaching_service import __version__
from coaching_service.core.auth import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.ids import ObjectId, stable_id

COLLECTION = "migrations"
_DEADLINE_SECONDS = 24 * 3600.0  # of one operation of a step, instead of the deadline of requests

log = structlog.get_logger("coaching_service.migrations")


class NewerDatabase(Exception):
    """A later version has changed the stored documents; the message says what to do."""


Apply = Callable[[Database, Vault], Awaitable[None]]


@dataclass(frozen=True)
class Step:
    """One change of stored documents. `number` decides the order; neither it nor the name of the function changes.

    `release` is the minor version that brings it, such as "0.3". Another patch version of the same minor version may
    serve the changed documents, an earlier minor version may not: see docs/upgrading.md.
    """

    number: int
    apply: Apply
    release: str

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.apply.__name__

    @property
    def description(self) -> str:
        """What the stored documents are like afterwards: the first paragraph of the docstring, in one line."""
        return " ".join((self.apply.__doc__ or "").partition("\n\n")[0].split())


def _step(number: int, release: str) -> Callable[[Apply], Apply]:
    """Return the decorator that declares a step."""

    def declare(apply: Apply) -> Apply:
        STEPS.append(Step(number, apply, release))
        return apply

    return declare


STEPS: list[Step] = []
_NEW_JOB: dict[str, Any] = {"about": None, "attempts": 0, "lease": None}


async def set_missing(db: Database, collection: str, fields: Mapping[str, Any]) -> None:
    """Set each of the fields in the documents that lack it."""
    for name, value in fields.items():
        await db[collection].update_many({name: {"$exists": False}}, {"$set": {name: value}})


async def drop_indexes(db: Database, collection: str, *names: str) -> None:
    """Drop those indexes of a collection that it has."""
    if collection in await db.list_collection_names():
        for name in (await db[collection].index_information()).keys() & set(names):
            await db[collection].drop_index(name)


# --- Steps of 0.2 -----------------------------------------------------------------------------------------------------


async def _compute_figures(db: Database, lacking: Filter) -> None:
    """Let the background job renew the figures of the clients that lack some."""
    long_ago = datetime(1970, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
    where = {**lacking, "figuresUntil": {"$ne": long_ago}}
    await db["customers"].update_many(where, {"$set": {"figuresUntil": long_ago}})


@_step(1, "0.2")
async def last_trained_date(db: Database, _: Vault) -> None:
    """Clients have `customerRoleData.lastTrainedDate`, null until a session with completed work is logged."""
    await set_missing(db, "customers", {"customerRoleData.lastTrainedDate": None})


@_step(2, "0.2")
async def sealed_mail(db: Database, vault: Vault) -> None:
    """The content of queued mail is encrypted: it holds addresses and tokens."""
    names, unsealed = ("to", "subject", "text"), {"arguments.text": {"$exists": True}}
    async for job in db["jobs"].find({"kind": "send_mail", **unsealed}):
        content = orjson.dumps({name: job["arguments"][name] for name in names})
        sealed = {"arguments.sealed": vault.seal(content, f"mail:{job['_id']}")}
        change = {"$set": sealed, "$unset": {f"arguments.{name}": "" for name in names}}
        await db["jobs"].update_one({"_id": job["_id"], **unsealed}, change)


_TRAINED_IDS = {"$ifNull": ["$$item.tally.exercises.exerciseId", []]}
_ITEM = {"$mergeObjects": ["$$item", {"doneExerciseIds": _TRAINED_IDS}]}
_HAS_SETS = {"$in": ["$$item.type", ["EXERCISE", "CIRCUIT"]]}
_IS_TRAINED = {"$cond": [_HAS_SETS, {"$gt": [{"$size": _TRAINED_IDS}, 0]}, "$$item.isCompleted"]}


def _map_items(expression: dict[str, Any]) -> dict[str, Any]:
    return {"$map": {"input": "$items", "as": "item", "in": expression}}


@_step(3, "0.2")
async def sessions(db: Database, _: Vault) -> None:
    """A session needs a completed set that is not warm-up, or a completed item of a type without sets.

    `doneExerciseIds` of an item are the exercises with such a set, and `done` of a block is null unless it is a
    session. The figures of clients are computed again, as their last trained date was not stored before.
    """
    is_session = {"$anyElementTrue": [_map_items(_IS_TRAINED)]}
    fields = {"items": _map_items(_ITEM), "done": {"$cond": [is_session, "$done", None]}}
    await db["workoutBlocks"].update_many({"done": {"$ne": None}}, [{"$set": fields}])
    await _compute_figures(db, {"customerRoleData.lastTrainedDate": None})


@_step(4, "0.2")
async def exercise_media(db: Database, _: Vault) -> None:
    """Media of exercises have `_id` and `thumbnailUrl`; exercises no longer have suffixes for the search (`suf`)."""
    async for exercise in db["exercises"].find({"media": {"$elemMatch": {"_id": {"$exists": False}}}}, {"media": 1}):
        media: list[dict[str, Any]] = [
            {"_id": ObjectId(), "thumbnailUrl": None, **stored} for stored in exercise["media"]
        ]
        unchanged = {"_id": exercise["_id"], "media": exercise["media"]}
        await db["exercises"].update_one(unchanged, {"$set": {"media": media}})
    await db["exercises"].update_many({"suf": {"$exists": True}}, {"$unset": {"suf": ""}})


@_step(5, "0.2")
async def photo_content_types(db: Database, _: Vault) -> None:
    """Each stored progress photo has the `contentType` of its file, from which the extension of its key is derived."""
    for side in ("front", "back", "side"):
        file_id, content_type = f"sides.{side}.fileId", f"sides.{side}.contentType"
        async for photos in db["progressPhotos"].find({file_id: {"$exists": True}, content_type: {"$exists": False}}):
            photo_id = photos["sides"][side]["fileId"]
            if file := await db["fs.files"].find_one({"_id": photo_id}, {"contentType": 1}):
                await db["progressPhotos"].update_one(
                    {"_id": photos["_id"], file_id: photo_id}, {"$set": {content_type: file["contentType"]}}
                )


@_step(6, "0.2")
async def session_applications(db: Database, _: Vault) -> None:
    """The application that a sign-in session belongs to is stored as `application`; its name was `door`."""
    await db["sessions"].update_many({"door": {"$exists": True}}, {"$rename": {"door": "application"}})


_KEY = ("companyId", "customerId", "exerciseId")
_REPS = {"$ifNull": ["$reps", 1]}
_EPLEY = {"$round": [{"$multiply": ["$value", {"$add": [1, {"$divide": [_REPS, 30]}]}]}, 2]}
_ESTIMATE = {
    "$switch": {
        "branches": [
            {"case": {"$eq": ["$type", "estimated_1rm"]}, "then": "$value"},
            {"case": {"$eq": [_REPS, 1]}, "then": "$value"},
            {"case": {"$and": [{"$gte": [_REPS, 2]}, {"$lte": [_REPS, 12]}]}, "then": _EPLEY},
        ],
        "default": None,
    }
}


@_step(7, "0.2")
async def one_rep_max_estimates(db: Database, _: Vault) -> None:
    """A client's estimated one-repetition maximum for each exercise is stored: the highest of the personal records."""
    key = {name: f"${name}" for name in _KEY}
    records = db["personalRecords"].aggregate(
        [
            {"$match": {"type": {"$in": ["estimated_1rm", "heaviest_load"]}}},
            {"$group": {"_id": key, "value": {"$max": _ESTIMATE}}},
            {"$match": {"value": {"$gt": 0}}},
        ],
        allowDiskUse=True,
    )
    async for record in records:
        estimated: dict[str, Any] = {**record["_id"], "source": "records"}
        if await db["trainingMaxes"].find_one(estimated, {"_id": 1}):
            continue
        # The same identifier in every process, so that two that migrate at the same time store it once.
        digest = hashlib.sha256(b"".join(estimated[name].binary for name in _KEY)).digest()
        metadata = {"_id": ObjectId(digest[:12]), "createdAt": (at := now()), "updatedAt": at, "version": 0}
        with suppress(DuplicateKeyError):
            await db["trainingMaxes"].insert_one({**estimated, "value": record["value"], **metadata})


@_step(8, "0.2")
async def authors(db: Database, _: Vault) -> None:
    """Notes have an author and flags, logs state which texts the client wrote, and companies have `notifications`.

    Authors are taken from the activity feed, whose entries name who added a note or logged an item; where they do not,
    the author of a note is null, and a text counts as the coach's. So does the comment on a session, which has no
    entry.
    """
    await set_missing(db, "companies", {"notifications": {"messages": True}})
    async for note in db["notes"].find({"author": {"$exists": False}}, {"companyId": 1, "customerId": 1}):
        about = {"companyId": note["companyId"], "customerId": note["customerId"], "sourceId": note["_id"]}
        added = await db["activity"].find_one({**about, "type": "note_added"}, {"actor": 1})
        actor = added.get("actor") if added else None
        author = {"_id": actor["_id"], "name": actor["name"]} if actor else None
        fields = {"author": author, "isPinned": False, "isHealth": False}
        await db["notes"].update_one({"_id": note["_id"], "author": {"$exists": False}}, {"$set": fields})
    logs = ["item_logged", "form_submitted", "metric_recorded"]
    logged_by_client = {"type": {"$in": logs}, "actor.type": "client"}
    async for entry in db["activity"].find(logged_by_client, {"companyId": 1, "customerId": 1, "sourceId": 1}):
        of_client = {"companyId": entry["companyId"], "customerId": entry["customerId"]}
        block = await db["workoutBlocks"].find_one({**of_client, "items._id": entry["sourceId"]}, {"items.$": 1})
        if block is None or "clientTexts" in block["items"][0]:
            continue
        [item] = block["items"]
        questions = item["form"]["questions"] if item["type"] == "FORM" else []
        text_ids = {question["_id"] for question in questions if question["type"] == "text"}
        answered = [each["questionId"] for each in item.get("answers") or []]
        texts = [*(["comment"] if item["comment"] else []), *(str(each) for each in answered if each in text_ids)]
        without_texts = {"$elemMatch": {"_id": item["_id"], "clientTexts": {"$exists": False}}}
        unchanged = {"_id": block["_id"], "items": without_texts}
        await db["workoutBlocks"].update_one(unchanged, {"$set": {"items.$.clientTexts": texts}})


_SIGNED = "/files/([0-9a-f]{24})[?]expires=[0-9]+&signature="
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


@_step(9, "0.2")
async def exercise_uploads(db: Database, _: Vault) -> None:
    """Links to exercises' pictures are made when they are read: `image` and `thumbnail` are not stored, and media that
    were stored as a signed link have the identifier of their file.
    """
    async for exercise in db["exercises"].find({"media.url": {"$regex": _SIGNED}}, {"media": 1, "companyId": 1}):
        media = [await _convert(db, exercise["companyId"], each) for each in exercise["media"]]
        unchanged = {"_id": exercise["_id"], "media": exercise["media"]}
        await db["exercises"].update_one(unchanged, {"$set": {"media": media}})
    stored_pictures = {"image": "", "thumbnail": ""}
    await db["exercises"].update_many(
        {"$or": [{name: {"$exists": True}} for name in stored_pictures]}, {"$unset": stored_pictures}
    )


async def _convert(db: Database, company_id: ObjectId, media: dict[str, Any]) -> dict[str, Any]:
    file = await db["fs.files"].find_one({"_id": _file_id(media["url"]), "companyId": company_id})
    if file is None:
        return media
    return {
        "_id": media["_id"],
        "type": media["type"],
        "key": f"{file['_id']}{_EXTENSIONS.get(file['contentType'], '')}",
        "source": "upload",
        "url": None,
        "thumbnailUrl": None,
        "fileId": file["_id"],
        "thumbnailId": _file_id(media["thumbnailUrl"]),
    }


def _file_id(url: str | None) -> ObjectId | None:
    match = re.search(_SIGNED, url or "")
    return ObjectId(match[1]) if match else None


_BATCH = 1_000
_EVENT_TYPES = {
    "workout_completed": "workout.completed",
    "item_logged": "item.logged",
    "form_submitted": "form.submitted",
    "metric_recorded": "metric.recorded",
    "photo_added": "photo.added",
    "plan_uploaded": "plan.uploaded",
    "personal_record": "record.achieved",
    "note_added": "note.created",
    "program_assigned": "program.assigned",
}
_INTERFACES = {"coach": "session", "key": "apiKey", "assistant": "assistant", "client": "client"}


@_step(10, "0.2")
async def change_log(db: Database, _: Vault) -> None:
    """The entries of the activity feed are part of the change log; they were documents of the collection `activity`."""
    last: Any = None
    while True:
        where = {} if last is None else {"_id": {"$gt": last}}
        entries = await db["activity"].find(where, limit=_BATCH).sort("_id", 1).to_list(None)
        if not entries:
            break
        last = entries[-1]["_id"]
        writes = [UpdateOne({"_id": entry["_id"]}, {"$setOnInsert": _change(entry)}, upsert=True) for entry in entries]
        await db["changes"].bulk_write(writes, ordered=False)
    await db.drop_collection("activity")


def _change(entry: dict[str, Any]) -> dict[str, Any]:
    actor = entry.get("actor")
    feed_entry = {
        "_id": entry["_id"],
        "type": _EVENT_TYPES[entry["type"]],
        "sourceId": entry["sourceId"],
        "data": entry["data"],
        "hiddenBy": None,
    }
    return {
        "companyId": entry["companyId"],
        "createdAt": entry["createdAt"],
        "updatedAt": entry["updatedAt"],
        "version": 0,
        "actor": actor,
        "via": _INTERFACES[actor["type"]] if actor else "session",
        "credentialId": None,
        "operation": "",
        "customerId": entry["customerId"],
        "documents": [],
        "undoable": False,
        "events": [],
        "eventCount": 0,
        "feed": [feed_entry],
        "feedCount": 1,
        "feedAt": entry["date"],
        "pending": True,
        "undoneBy": None,
        "undoOf": None,
    }


@_step(11, "0.2")
async def pending_forms(db: Database, _: Vault) -> None:
    """Items have `isPendingForm`: whether they are a form that is not answered. It is missing where it would be
    false.
    """
    pending = {"type": "FORM", "isCompleted": False, "isPendingForm": {"$exists": False}}
    condition = {f"item.{name}": value for name, value in pending.items()}
    await db["workoutBlocks"].update_many(
        {"items": {"$elemMatch": pending}}, {"$set": {"items.$[item].isPendingForm": True}}, array_filters=[condition]
    )


@_step(12, "0.2")
async def attention(db: Database, _: Vault) -> None:
    """Companies have the settings of attention, and why clients need attention is computed for all of them."""
    defaults = {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}
    await set_missing(db, "companies", {"attention": defaults})
    await _compute_figures(db, {"attention": {"$exists": False}})


@_step(13, "0.2")
async def file_totals(db: Database, _: Vault) -> None:
    """The number and the size of the files of each company are stored."""
    stages: list[dict[str, Any]] = [
        {"$match": {"pending": {"$ne": True}, "companyId": {"$type": "objectId"}}},
        {"$group": {"_id": "$companyId", "files": {"$sum": 1}, "bytes": {"$sum": "$length"}}},
        {"$set": {"companyId": "$_id"}},
        {"$merge": {"into": "fileTotals", "on": "_id", "whenMatched": "replace"}},
    ]
    await db["fs.files"].aggregate(stages).to_list(None)


@_step(14, "0.2")
async def first_access_index(db: Database, _: Vault) -> None:
    """The hash of a first-access token is not in a unique index, which could not be enforced on a sharded cluster."""
    await drop_indexes(db, "customers", "firstAccessHash")


@_step(15, "0.2")
async def group_totals(db: Database, _: Vault) -> None:
    """The clients in each group are counted, a day later: until then, processes of an earlier version may still serve.

    These do not maintain the numbers, which are not used before the job has counted all clients.
    """
    kind = "count_groups"
    times = {"runAfter": {"$add": ["$$NOW", 24 * 3600 * 1000]}, "createdAt": "$$NOW"}
    job = {**_NEW_JOB, "companyId": None, "kind": kind, "arguments": {"$literal": {}}, **times}
    stages = [{"$replaceWith": {"$mergeObjects": [job, "$$ROOT"]}}]
    with suppress(DuplicateKeyError):  # another process is storing it
        await db["jobs"].update_one({"_id": stable_id("job", kind)}, stages, upsert=True)


_CHANGES, _NUMBERS = "changes", "changeNumbers"
_STORED_FOR = timedelta(days=31)
_NUMBERS_OF_BATCH = 500
_WRITES = 100
_REPLACED_INDEXES = (
    "companyId_lastSeq",
    "companyId_customerId_lastSeq",
    "companyId_customerId",
    "companyId_credentialId_lastSeq",
    "companyId_createdAt",
    "pending",
)


# Not for a patch version: the code before it does not store the batches, and names the indexes that it drops.
@_step(16, "0.2")
async def number_batches(db: Database, _: Vault) -> None:
    """The numbers of the last 31 days are stored apart from the changes, in whose indexes they no longer are.

    A process of a minor version before does not store them, and needs the indexes.
    """
    batch = {"companyId": "$companyId", "number": {"$floor": {"$divide": ["$lastSeq", _NUMBERS_OF_BATCH]}}}
    stages: list[dict[str, Any]] = [
        {"$match": {"lastSeq": {"$gt": 0}, "createdAt": {"$gte": now() - _STORED_FOR}}},
        {"$project": {"companyId": 1, "seq": 1, "lastSeq": 1, "createdAt": 1}},
        {"$sort": {"companyId": 1, "lastSeq": 1}},
        {
            "$group": {
                "_id": batch,
                "first": {"$min": "$seq"},
                "last": {"$max": "$lastSeq"},
                "changes": {"$push": {"_id": "$_id", "lastSeq": "$lastSeq"}},
                "numberedAt": {"$max": "$createdAt"},
            }
        },
    ]
    cursor = db[_CHANGES].aggregate(stages, allowDiskUse=True)
    while grouped := await cursor.to_list(_WRITES):
        writes = []
        for numbers in grouped:
            key = numbers.pop("_id")
            identifier = stable_id(_NUMBERS, str(key["companyId"]), str(int(key["number"])))
            new = {"$setOnInsert": {"companyId": key["companyId"], **numbers}}
            writes.append(UpdateOne({"_id": identifier}, new, upsert=True))
        await db[_NUMBERS].bulk_write(writes, ordered=False)
    await drop_indexes(db, _CHANGES, *_REPLACED_INDEXES)


# --- Steps of 0.3 -----------------------------------------------------------------------------------------------------
# The numbers 17 to 22 and 28 are not used again: these steps became part of others before the release.


async def _queue(db: Database, reason: str, kind: str, arguments: Mapping[str, Any]) -> None:
    """Queue a job that works through all clients, once for each company and reason."""
    async for company in db["companies"].find({}, {"_id": 1}):
        job = {**_NEW_JOB, "companyId": company["_id"], "kind": kind, "arguments": arguments}
        job |= {"runAfter": (at := now()), "createdAt": at}
        identifier = stable_id(reason, str(company["_id"]))
        await db["jobs"].update_one({"_id": identifier}, {"$setOnInsert": job}, upsert=True)


@_step(23, "0.3")
async def pending_changes(db: Database, _: Vault) -> None:
    """Changes without a number have an index; no position in their stream is stored, and no time of the latest one."""
    await drop_indexes(db, "changes", "createdAt")
    await db.drop_collection("sequencer")


# Not for a patch version of 0.2: its code does not know the new types of records.
@_step(24, "0.3")
async def training_load(db: Database, _: Vault) -> None:
    """A background job of each company copies body weights from metrics, and computes totals, best sets and personal
    records of logs again.

    Loads of assisted machines are no volume, estimates of pull-ups and dips are of the whole weight, repetitions in
    reserve count in estimates, times and distances are records.
    """
    await _queue(db, "training load", "renew_training_load", {"last": None, "exerciseId": None})


@_step(25, "0.3")
async def rate_limits(db: Database, _: Vault) -> None:
    """Attempts and tokens of limits are stored in one collection, `rateLimits`; those counted before are forgotten."""
    await db.drop_collection("rateCounters")
    await db.drop_collection("tokenBuckets")


@_step(26, "0.3")
async def one_collection_of_jobs(db: Database, _: Vault) -> None:
    """Bulk operations and undos of changes are jobs of a company, as imports are: `bulkJobs` is gone."""
    await drop_indexes(db, "companyJobs", "companyId_kind", "companyId_kind_customerId")
    async for job in db["bulkJobs"].find({}):
        requested = {"requestedBy": job.pop("coachId"), "caller": job["work"].pop("caller"), "customerId": None}
        await db["companyJobs"].replace_one({"_id": job["_id"]}, {**job, **requested}, upsert=True)
    await db.drop_collection("bulkJobs")


@_step(27, "0.3")
async def search_texts(db: Database, _: Vault) -> None:
    """A background job of each company indexes the words of its texts, by which they are found."""
    await _queue(db, "search texts", "index_texts", {"last": None})


_ACTIONS_BEFORE = {
    "apiKey.revealed": "key.revealed",
    "apiKey.revoked": "key.deleted",
    "assistant.granted": "assistant.allowed",
    "calendarLink.issued": "calendar_link.created",
    "calendarLink.revoked": "calendar_link.deleted",
    "company.importBegun": "import.started",
    "company.importUndone": "import.undone",
    "company.jobCancelled": "job.cancelled",
    "company.loadUnitConversionBegun": "load_unit.conversion_started",
    "company.loadUnitConverted": "load_unit.converted",
    "customer.impersonated": "client.impersonated",
    "customer.password_set": "client.password_set",
    "pushSubscription.created": "push_subscription.created",
    "pushSubscription.deleted": "push_subscription.deleted",
    "webhook.secretRotated": "webhook.secret_rotated",
}
_AUDIT_TARGETS = ("keyId", "webhookId", "grantId", "proposalId", "jobId", "sandboxId", "subjectId")


@_step(29, "0.3")
async def audit_log(db: Database, _: Vault) -> None:
    """Entries of the audit log have `actor`, `customerId`, `target`, `count`, and `until`, 400 days later."""
    for before, after in _ACTIONS_BEFORE.items():
        await db["audit"].update_many({"action": before}, {"$set": {"action": after}})
    roles = [
        {"case": {"$eq": ["$about", "$actorId"]}, "then": ["client", "client"]},
        {"case": {"$eq": ["$via", "apiKey"]}, "then": ["key", "apiKey"]},
        {"case": {"$eq": ["$via", "mcp"]}, "then": ["assistant", "assistant"]},
        {"case": {"$eq": ["$via", "application"]}, "then": ["application", "application"]},
    ]
    role = {"$switch": {"branches": roles, "default": ["coach", "session"]}}
    name = {"$ifNull": ["$clientName", None]}
    named = [f"${each}" for each in (*_AUDIT_TARGETS, "about")]
    target = {"kind": {"$first": {"$split": ["$action", "."]}}, "_id": {"$ifNull": [*named, None]}, "name": name}
    fields = {
        "actor": {"type": {"$first": role}, "_id": "$actorId", "name": ""},
        "via": {"$last": role},
        "count": 1,
        "customerId": {"$ifNull": ["$about", None]},
        "target": target,
        "address": None,
        "until": {"$dateAdd": {"startDate": "$createdAt", "unit": "day", "amount": 400}},
    }
    gone = ("actorId", "about", "clientName", "isDryRun", "kind", *_AUDIT_TARGETS)
    await db["audit"].update_many({"actor": {"$exists": False}}, [{"$set": fields}, {"$unset": list(gone)}])
    await drop_indexes(db, "audit", "companyId_createdAt", "companyId_about")


@_step(30, "0.3")
async def settings(db: Database, _: Vault) -> None:
    """Companies, keys, connected assistants and webhooks have the settings of 0.3.

    Clients may import their history, move workouts and add some; the sessions of coaches need no second factor.
    Assistants with a key made before may contact people and change many clients, as they could, and may not confirm
    calls themselves: these wait for the coach's approval. Keys and webhooks are of a coach.
    """
    clients = dict.fromkeys(("clientsMayImport", "clientsMayMove", "clientsMayAdd"), True)
    await set_missing(db, "companies", {**clients, "requireSecondFactor": False})
    restrictions = {"restrictions.outreach": True, "restrictions.confirmInChat": False}
    await set_missing(db, "apiKeys", {**restrictions, "actsAs": "coach", "permissions": None, "customersScope": None})
    await set_missing(db, "assistantGrants", {"confirmInChat": False})
    await set_missing(db, "webhooks", {"allCompanies": False})


# --- Running them -----------------------------------------------------------------------------------------------------


async def migrate(db: Database, vault: Vault, steps: Sequence[Step] = STEPS) -> list[str]:
    """Apply every pending step in order and return their names.

    A step is recorded once it is complete, so an interrupted run continues with the step it was at.
    """
    applied = []
    for step in await find_pending(db, steps):
        log.info("migration started", step=step.number, name=step.name)
        with pymongo.timeout(_DEADLINE_SECONDS):
            await step.apply(db, vault)
        await _record(db, step)
        log.info("migration finished", step=step.number, name=step.name)
        applied.append(step.name)
    return applied


async def find_pending(db: Database, steps: Sequence[Step] = STEPS) -> list[Step]:
    """Return the steps that have not been applied to the database, in order."""
    applied = {record["_id"] async for record in db[COLLECTION].find({}, {"_id": 1})}
    return sorted((step for step in steps if step.number not in applied), key=lambda step: step.number)


async def require_known(db: Database, steps: Sequence[Step] = STEPS, version: str = __version__) -> None:
    """Raise NewerDatabase if a later minor version has changed the documents in a way that `version` does not know.

    Unknown steps of the same minor version are accepted: its patch versions serve one database together.
    """
    known = [step.number for step in steps]
    unknown = await db[COLLECTION].find({"_id": {"$nin": known}}, sort=[("_id", 1)]).to_list(None)
    for record in unknown:
        release = record.get("release", "a later version")
        if "release" not in record or minor_version(release) > minor_version(version):
            raise NewerDatabase(
                f"The database was migrated to {release} (step {record['_id']} {record['name']}), and this is version "
                f"{version}: start {release} or later, or restore the backup made before the migration"
            )


def minor_version(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version: 0.2.1.dev0 is of the minor version (0, 2)."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


async def record_new_database(db: Database) -> None:
    """Record every step as applied if the database is empty: it has no documents of an older shape.

    Must be called before anything else is stored.
    """
    if not await db.list_collection_names():
        for step in STEPS:
            await _record(db, step)


async def _record(db: Database, step: Step) -> None:
    try:
        await db[COLLECTION].insert_one(
            {"_id": step.number, "name": step.name, "release": step.release, "appliedAt": now()}
        )
    except DuplicateKeyError:  # another process applied the step at the same time
        log.info("migration was applied by another process", step=step.number, name=step.name)

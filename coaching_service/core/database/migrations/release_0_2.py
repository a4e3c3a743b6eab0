"""What version 0.2 changes. The docstring of a step says what the stored documents are like afterwards."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import orjson
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError

from coaching_service.core.auth import Vault
from coaching_service.core.database.context import Database
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.migrations.release_0_3 import Release, drop_indexes, set_missing
from coaching_service.core.ids import ObjectId, stable_id

release = Release("0.2")


async def _compute_figures(db: Database, lacking: Filter) -> None:
    """Let the background job renew the figures of the clients that lack some."""
    long_ago = datetime(1970, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone
    where = {**lacking, "figuresUntil": {"$ne": long_ago}}
    await db["customers"].update_many(where, {"$set": {"figuresUntil": long_ago}})


@release.step(1)
async def last_trained_date(db: Database, _: Vault) -> None:
    """Clients have `customerRoleData.lastTrainedDate`, null until a session with completed work is logged."""
    await set_missing(db, "customers", {"customerRoleData.lastTrainedDate": None})


@release.step(2)
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


@release.step(3)
async def sessions(db: Database, _: Vault) -> None:
    """A session needs a completed set that is not warm-up, or a completed item of a type without sets.

    `doneExerciseIds` of an item are the exercises with such a set, and `done` of a block is null unless it is a
    session. The figures of clients are computed again, as their last trained date was not stored before.
    """
    is_session = {"$anyElementTrue": [_map_items(_IS_TRAINED)]}
    fields = {"items": _map_items(_ITEM), "done": {"$cond": [is_session, "$done", None]}}
    await db["workoutBlocks"].update_many({"done": {"$ne": None}}, [{"$set": fields}])
    await _compute_figures(db, {"customerRoleData.lastTrainedDate": None})


@release.step(4)
async def exercise_media(db: Database, _: Vault) -> None:
    """Media of exercises have `_id` and `thumbnailUrl`; exercises no longer have suffixes for the search (`suf`)."""
    async for exercise in db["exercises"].find({"media": {"$elemMatch": {"_id": {"$exists": False}}}}, {"media": 1}):
        media: list[dict[str, Any]] = [
            {"_id": ObjectId(), "thumbnailUrl": None, **stored} for stored in exercise["media"]
        ]
        unchanged = {"_id": exercise["_id"], "media": exercise["media"]}
        await db["exercises"].update_one(unchanged, {"$set": {"media": media}})
    await db["exercises"].update_many({"suf": {"$exists": True}}, {"$unset": {"suf": ""}})


@release.step(5)
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


@release.step(6)
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


@release.step(7)
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
        await _store(db, record["_id"], record["value"])


async def _store(db: Database, key: dict[str, Any], value: float) -> None:
    key = {**key, "source": "records"}
    if await db["trainingMaxes"].find_one(key, {"_id": 1}):
        return
    # The same identifier in every process, so that two that migrate at the same time store it once.
    digest = hashlib.sha256(b"".join(key[name].binary for name in _KEY)).digest()
    at = now()
    estimate = {"_id": ObjectId(digest[:12]), **key, "value": value, "createdAt": at, "updatedAt": at, "version": 0}
    with suppress(DuplicateKeyError):
        await db["trainingMaxes"].insert_one(estimate)


@release.step(8)
async def authors(db: Database, _: Vault) -> None:
    """Notes have an author and flags, logs state which texts the client wrote, and companies have `notifications`.

    Authors are taken from the activity feed, whose entries name who added a note or logged an item; where they do not,
    the author of a note is null, and a text counts as the coach's. So does the comment on a session, which has no
    entry.
    """
    await set_missing(db, "companies", {"notifications": {"messages": True}})
    async for note in db["notes"].find({"author": {"$exists": False}}, {"companyId": 1, "customerId": 1}):
        await _complete_note(db, note)
    logs = ["item_logged", "form_submitted", "metric_recorded"]
    logged_by_client = {"type": {"$in": logs}, "actor.type": "client"}
    async for entry in db["activity"].find(logged_by_client, {"companyId": 1, "customerId": 1, "sourceId": 1}):
        await _add_client_texts(db, entry)


async def _complete_note(db: Database, note: dict[str, Any]) -> None:
    about = {"companyId": note["companyId"], "customerId": note["customerId"], "sourceId": note["_id"]}
    entry = await db["activity"].find_one({**about, "type": "note_added"}, {"actor": 1})
    actor = entry.get("actor") if entry else None
    author = {"_id": actor["_id"], "name": actor["name"]} if actor else None
    fields = {"author": author, "isPinned": False, "isHealth": False}
    await db["notes"].update_one({"_id": note["_id"], "author": {"$exists": False}}, {"$set": fields})


async def _add_client_texts(db: Database, entry: dict[str, Any]) -> None:
    of_client = {"companyId": entry["companyId"], "customerId": entry["customerId"]}
    block = await db["workoutBlocks"].find_one({**of_client, "items._id": entry["sourceId"]}, {"items.$": 1})
    if block is None or "clientTexts" in block["items"][0]:
        return
    item = block["items"][0]
    unchanged = {"_id": block["_id"], "items": {"$elemMatch": {"_id": item["_id"], "clientTexts": {"$exists": False}}}}
    await db["workoutBlocks"].update_one(unchanged, {"$set": {"items.$.clientTexts": _texts_of(item)}})


def _texts_of(item: dict[str, Any]) -> list[str]:
    """Return the names of the texts in the log of an item."""
    names = ["comment"] if item["comment"] else []
    questions = item["form"]["questions"] if item["type"] == "FORM" else []
    text_ids = {question["_id"] for question in questions if question["type"] == "text"}
    answers = item.get("answers") or []
    return names + [str(answer["questionId"]) for answer in answers if answer["questionId"] in text_ids]


_SIGNED = "/files/([0-9a-f]{24})[?]expires=[0-9]+&signature="
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


@release.step(9)
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


@release.step(10)
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


@release.step(11)
async def pending_forms(db: Database, _: Vault) -> None:
    """Items have `isPendingForm`: whether they are a form that is not answered. It is missing where it would be
    false.
    """
    pending = {"type": "FORM", "isCompleted": False, "isPendingForm": {"$exists": False}}
    condition = {f"item.{name}": value for name, value in pending.items()}
    await db["workoutBlocks"].update_many(
        {"items": {"$elemMatch": pending}}, {"$set": {"items.$[item].isPendingForm": True}}, array_filters=[condition]
    )


@release.step(12)
async def attention(db: Database, _: Vault) -> None:
    """Companies have the settings of attention, and why clients need attention is computed for all of them."""
    defaults = {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}
    await set_missing(db, "companies", {"attention": defaults})
    await _compute_figures(db, {"attention": {"$exists": False}})


@release.step(13)
async def file_totals(db: Database, _: Vault) -> None:
    """The number and the size of the files of each company are stored."""
    stages: list[dict[str, Any]] = [
        {"$match": {"pending": {"$ne": True}, "companyId": {"$type": "objectId"}}},
        {"$group": {"_id": "$companyId", "files": {"$sum": 1}, "bytes": {"$sum": "$length"}}},
        {"$set": {"companyId": "$_id"}},
        {"$merge": {"into": "fileTotals", "on": "_id", "whenMatched": "replace"}},
    ]
    await db["fs.files"].aggregate(stages).to_list(None)


@release.step(14)
async def first_access_index(db: Database, _: Vault) -> None:
    """The hash of a first-access token is not in a unique index, which could not be enforced on a sharded cluster."""
    await drop_indexes(db, "customers", "firstAccessHash")


@release.step(15)
async def group_totals(db: Database, _: Vault) -> None:
    """The clients in each group are counted, a day later: until then, processes of an earlier version may still serve.

    These do not maintain the numbers, which are not used before the job has counted all clients.
    """
    kind = "count_groups"
    job: dict[str, Any] = {
        "companyId": None,
        "about": None,
        "kind": kind,
        "arguments": {"$literal": {}},
        "runAfter": {"$add": ["$$NOW", 24 * 3600 * 1000]},
        "attempts": 0,
        "lease": None,
        "createdAt": "$$NOW",
    }
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
@release.step(16)
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
        await db[_NUMBERS].bulk_write([_insertion(**each) for each in grouped], ordered=False)
    await drop_indexes(db, _CHANGES, *_REPLACED_INDEXES)


def _insertion(_id: dict[str, Any], **numbers: Any) -> UpdateOne:
    company = _id["companyId"]
    identifier = stable_id(_NUMBERS, str(company), str(int(_id["number"])))
    return UpdateOne({"_id": identifier}, {"$setOnInsert": {"companyId": company, **numbers}}, upsert=True)

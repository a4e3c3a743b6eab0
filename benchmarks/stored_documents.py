"""The documents of the bare handlers, as the service stores them: the same bytes are written, the same indexes updated."""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

from bson import ObjectId, Timestamp

from coaching_service.core.text import normalize, suffixes

Document = dict[str, Any]
_PRIVATE = (
    *("sortName", "sortSurname", "search", "suf", "firstAccessHash", "scheduleChanges", "figuresUntil", "attention"),
    *("notifications", "language", "erasureRequestedAt"),
)
PAGE_HIDES = dict.fromkeys(_PRIVATE, 0)
BLOCK_HIDES = {"companyId": 0, "position": 0, "done": 0}
NOT_DONE = {
    **dict.fromkeys(("exerciseId", "round", "seconds", "meters", "rpe", "rir")),
    "isWarmup": False,
    "setKind": "normal",
}
_UNSET = {
    **dict.fromkeys(("rest", "rpe", "rir", "tempo", "loadPercent")),
    **dict.fromkeys(("isWarmup", "isAmrap", "perSide"), False),
    "setKind": "normal",
}


def new_customer(company: ObjectId, body: Document) -> tuple[str, Document]:
    """The token for the first access of a new client, and the document as the service stores it, without its search."""
    token, at = str(uuid.uuid4()), now()
    given = {name: body.get(name) for name in ("name", "surname", "email", "phone", "birthday", "timezone")}
    rates = ("complianceRate7d", "complianceRate30d", "complianceRate90d", "complianceDate")
    return token, {
        "_id": ObjectId(),
        "companyId": company,
        **given,
        "role": "CUSTOMER",
        "profilePhoto": None,
        "lastActivityDate": None,
        "customerRoleData": {
            "isArchived": False,
            "groups": [],
            "assignedTo": None,
            "customerType": "REAL",
            **dict.fromkeys((*rates, "lastWorkoutDate", "lastTrainedDate", "firstLoginDate")),
        },
        "firstAccessHash": hashlib.sha256(token.encode()).hexdigest(),
        "figuresUntil": at,
        "sortName": normalize(body["name"]),
        "sortSurname": normalize(body.get("surname") or ""),
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
    }


def search_fields(customer: Document) -> Document:
    full_name = normalize(f"{customer['name']} {customer['surname'] or ''}")
    email = normalize(customer["email"] or "")
    return {"search": f"{full_name}\n{email}", "suf": suffixes(full_name, email)}


def shown_customer(customer: Document) -> Document:
    shown = {name: value for name, value in customer.items() if name not in PAGE_HIDES and name != "profilePhoto"}
    return shown | {"profilePhotoUrl": None}


def attention_entry(client: Document) -> Document:
    role, attention = client["customerRoleData"], client["attention"]
    shown = {name: role[name] for name in ("groups", "assignedTo", "lastTrainedDate", "complianceRate7d")}
    names = {name: client[name] for name in ("_id", "name", "surname")}
    customer = {**names, "profilePhotoUrl": None, **shown}
    return {"customer": customer, "score": attention["score"], "reasons": attention["reasons"]}


def events_of(change: Document) -> list[Document]:
    actor = {"type": change["actor"]["type"], "_id": change["actor"]["_id"]}
    return [
        {
            "id": f"{change['_id']}.{number}",
            "seq": change["seq"] + number,
            "type": event["type"],
            "createdAt": change["createdAt"],
            "customerId": event["customerId"],
            "actor": actor,
            "data": event["data"],
        }
        for number, event in enumerate(change["events"])
    ]


def _entry(api_key: Document, customer: ObjectId, operation: str, document: Document, event: str) -> Document:
    """A change with the fields of a stored change of the service, so that the same bytes and indexes are written.

    The name of the coach, which the service loads with the key, is left out.
    """
    at = now()
    data = {"wblockId": document["_id"]} if document["kind"] == "workout" else {"customerId": customer}
    return {
        "_id": ObjectId(),
        "companyId": api_key["companyId"],
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
        "actor": {"type": "key", "_id": api_key["coachId"]},
        "via": "apiKey",
        "credentialId": api_key["_id"],
        "operation": operation,
        "customerId": customer,
        "documents": [document],
        "undoable": False,
        "events": [{"type": event, "customerId": customer, "data": data}],
        "eventCount": 1,
        "feed": [],
        "feedCount": 0,
        "feedAt": at,
        "pending": Timestamp(0, 0),
        "undoneBy": None,
        "undoOf": None,
    }


def customer_change(api_key: Document, customer: Document) -> Document:
    """The change of creating a client, which cannot be undone and so has no values."""
    document = {"collection": "customers", "kind": "customer", "_id": customer["_id"], "action": "created"}
    versions = {"fromVersion": 0, "toVersion": 0}
    return _entry(api_key, customer["_id"], "createCustomer", {**document, **versions}, "customer.created")


def block_change(
    api_key: Document,
    customer: ObjectId,
    block: ObjectId | None,
    operation: str,
    before: list[Document],
    after: list[Document],
) -> Document:
    """The change of blocks, with the items or blocks before and after."""
    document = {"collection": "workoutBlocks", "kind": "workout", "_id": block, "action": "changed"}
    entry = _entry(api_key, customer, operation, {**document, "fromVersion": 0, "toVersion": 1}, "workout.updated")
    fields = [{"path": "items", "elements": True, "before": before, "after": after}]
    undo = {"patch": [{"_id": block, "fields": fields}], "patchUntil": entry["createdAt"] + timedelta(days=30)}
    return entry | {"undoable": True} | undo


def copied_block(block: Document, later: timedelta, added: float) -> Document:
    """A copy of a block on a later day, with nothing done and heavier sets."""
    at = now()
    day = str(date.fromisoformat(block["date"]) + later)
    stamps = {"_id": ObjectId(), "createdAt": at, "updatedAt": at, "version": 0}
    return block | stamps | {"date": day, "items": [_copied_item(item, at, added) for item in block["items"]]}


def _copied_item(item: Document, at: datetime, added: float) -> Document:
    copy = {**item, "_id": ObjectId(), "createdAt": at, "updatedAt": at, "isCompleted": False, "customerSets": []}
    if "exerciseSets" in item:
        copy["exerciseSets"] = [
            planned | {"load": planned["load"] + added} if planned.get("load") else planned
            for planned in item["exerciseSets"]
        ]
    return copy


def stored_item(item: Document) -> Document:
    exercise = ObjectId(item["exerciseId"]) if "exerciseId" in item else None
    return stored_exercise(item, exercise) if exercise else {**item, "_id": ObjectId(), "exerciseIds": []}


def stored_exercise(body: Document, exercise: ObjectId) -> Document:
    """The item as the service stores it, field by field: the same bytes are written and the same indexes updated."""
    at = now()
    none_done = {"sets": 0, "reps": 0, "volumeLoad": 0, "exercises": []}
    return {
        "_id": ObjectId(),
        **body,
        "exerciseId": exercise,
        "exerciseSets": [_UNSET | planned for planned in body["exerciseSets"]],
        "supersetId": None,
        "isCompleted": False,
        "completedAt": None,
        "comment": None,
        "pain": None,
        "customerSets": [],
        "createdAt": at,
        "updatedAt": at,
        "exerciseIds": [exercise],
        "doneExerciseIds": [],
        "tally": none_done,
    }


def now() -> datetime:
    """The time as it is stored: UTC, without a time zone, in milliseconds."""
    at = datetime.now(UTC).replace(tzinfo=None)
    return at.replace(microsecond=at.microsecond // 1000 * 1000)

"""Samples of events, with invented identifiers, for those who build something that receives them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import orjson
from marshmallow import fields

from coaching_service.core.events import EVENT_TYPES, OWNER_EVENTS, EventType, EventValue
from coaching_service.core.http.openapi import SentEvent
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier
from coaching_service.people.changes import events
from coaching_service.people.changes.models import Event

_AT = datetime(2026, 3, 2, 8, 30)  # noqa: DTZ001 - stored times are UTC without a time zone
_TEXTS = {"itemType": "EXERCISE", "unit": "kg", "tool": "create_workout", "until": "2026-03-08", "to": "2026-03-08"}
_NUMBERS = {"value": 72.5, "reps": 5, "sets": 18, "sessions": 6}
# Events that belong to the company, not to a client.
_OF_COMPANY = ("exercise", "template", "proposal", "employee", "key")
_OF_LIBRARY = ("program.created", "program.updated", "program.deleted", "form.deleted", "metrics_set.deleted")


def list_samples(types: Iterable[EventType]) -> list[Event]:
    """Return a sample of each type of event; of all types if none is named."""
    return [sample_of(each) for each in dict.fromkeys(types or EVENT_TYPES)]


def sample_of(event_type: EventType) -> Event:
    """Return a sample of a type of event: all fields that its data can have, with values that are always the same."""
    change_id = _identifier("changeId")
    is_of_company = event_type.partition(".")[0] in _OF_COMPANY or event_type in _OF_LIBRARY
    schema = events.data_schema(event_type)
    return {
        "id": f"{change_id}.0",
        "seq": 1,
        "changeId": change_id,
        "type": event_type,
        "createdAt": _AT,
        "companyId": _identifier("companyId"),
        "customerId": None if is_of_company else _identifier("customerId"),
        "actor": {"type": "coach", "_id": _identifier("coachId"), "keyId": None, "applicationId": None},
        "data": {name: _value(name, field) for name, field in schema._declared_fields.items()},
    }


def _value(name: str, field: fields.Field[Any]) -> EventValue:
    if isinstance(field, Identifier):
        return _identifier(name)
    if isinstance(field, Choice):
        return field.choices[0]
    if isinstance(field, fields.List):
        return ["name"]
    if isinstance(field, fields.Boolean):
        return False
    if isinstance(field, fields.Number):
        return _NUMBERS.get(name, 1)
    if name in _TEXTS:
        return _TEXTS[name]
    return "2026-03-02" if isinstance(field, Date) else _AT


def _identifier(name: str) -> ObjectId:
    """Return the identifier that samples have in a field: the same in each, and no record's."""
    return ObjectId(f"00000000{hashlib.sha256(name.encode()).hexdigest()[:16]}")


def describe_webhooks() -> dict[str, SentEvent]:
    """Return what is sent to webhooks, by type of event."""
    return {
        each: SentEvent(
            events.event_schema(each).__name__,
            f"{events.data_of(each).__doc__}{' Only the owner sees it.' if each in OWNER_EVENTS else ''}",
            orjson.loads(to_json(sample_of(each))),
        )
        for each in EVENT_TYPES
    }

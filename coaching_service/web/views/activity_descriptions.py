"""Text descriptions of the events of a client's activity feed."""

from __future__ import annotations

from collections.abc import Collection

from coaching_service.core.changes.models import FeedData
from coaching_service.core.database.recording import Actor
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.models import ActivityEvent
from coaching_service.training.workouts.items.descriptions import format_number
from coaching_service.web.formatting import format_date
from coaching_service.web.record_words import format_record_value, record_name
from coaching_service.web.views.customer_layout import review_path

_TEMPLATES = {
    "workout_completed": "Completed {blockName}",
    "item_logged": "Logged {item} in {blockName}",
    "form_submitted": "Completed form: {item}",
    "metric_recorded": "{metricName}: {amount}",
    "photo_added": "Progress photo added ({side})",
    "plan_uploaded": "Nutrition plan version {number}: {fileName}",
    "personal_record": "Personal record in {exerciseName}. {record}: {amount}",
    "note_added": "Note added",
    "program_assigned": "Program {programName} assigned, {workouts}",
    "workout_moved": "Moved {blockName} from {planned} to {date}",
    "workout_added": "Added an own workout: {blockName}",
}
_FIRST_RESULT = "First time: {exerciseName}. {record}: {amount}"
_UNNAMED_ITEMS = {
    "EXERCISE": "an exercise",
    "CIRCUIT": "a circuit",
    "TASK": "a task",
    "REMINDER": "a reminder",
}
_VIA = {"key": " (API key)", "assistant": " (assistant)"}


def describe_actor(actor: Actor | None) -> str:
    """Describe the author of an event, such as `Olga Owner (assistant)`; empty if unknown."""
    return actor["name"] + _VIA.get(actor["type"], "") if actor else ""


def describe_event(event: ActivityEvent) -> str:
    """Describe an event in one line, such as `Personal record in Squat. Heaviest load: 80 kg`."""
    data, kind = event["data"], event["type"]
    if kind == "metric_recorded" and "metricName" not in data:
        return f"Recorded {data.get('itemName', 'metrics')} in {data['blockName']}"
    if kind == "form_submitted" and "itemName" not in data:
        return f"Completed a form in {data['blockName']}"
    count, value, unit = data.get("blocks", 0), data.get("value"), data.get("unit", "")
    values = {
        "item": _describe_item(data),
        "amount": format_number(value, "" if unit == "count" else unit),
        "workouts": f"{count} workout{'' if count == 1 else 's'}",
        "planned": format_date(data.get("plannedDate")),
        "date": format_date(data.get("day")),
    }
    if kind == "personal_record":
        values["amount"] = format_record_value(data["recordType"], data["value"], unit)
        values["record"] = record_name({"type": data["recordType"], "meters": data.get("meters")})
    template = _FIRST_RESULT if data.get("isFirst") else _TEMPLATES.get(kind, kind)
    return str(template).format_map(data | values)


def event_path(customer_id: ObjectId, event: ActivityEvent, existing_ids: Collection[ObjectId]) -> str:
    """Return the path of the review of the workout that an event is about; empty for any other event.

    `existing_ids`: the workouts that were not deleted since.
    """
    block_id = event["data"].get("wblockId")
    return review_path(customer_id, block_id) if block_id and block_id in existing_ids else ""


def _describe_item(data: FeedData) -> str:
    """Name the item of an event; entries recorded before names were stored only have its type."""
    name, item_type = data.get("itemName"), data.get("itemType", "")
    if name is None:
        return _UNNAMED_ITEMS.get(item_type, "an item")
    return str(name)

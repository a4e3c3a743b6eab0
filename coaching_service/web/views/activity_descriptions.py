"""Text descriptions of the events of a client's activity feed."""

from __future__ import annotations

from coaching_service.core.database.documents import Document
from coaching_service.web.views.item_descriptions import format_number

RECORD_TYPES = {"heaviest_load": "Heaviest load", "most_reps": "Most reps", "estimated_1rm": "Estimated 1RM"}
_TEMPLATES = {
    "workout_completed": "Completed {blockName}",
    "item_logged": "Logged {item} in {blockName}",
    "form_submitted": "Completed a form in {blockName}",
    "metric_recorded": "{metricName}: {amount}",
    "photo_added": "Progress photo added ({side})",
    "plan_uploaded": "Nutrition plan version {number}: {fileName}",
    "personal_record": "Personal record in {exerciseName}. {record}: {amount}",
    "note_added": "Note added",
    "program_assigned": "Program {programName} assigned, {workouts}",
}
_ITEM_TYPES = {"EXERCISE": "an exercise", "CIRCUIT": "a circuit", "TASK": "a task", "REMINDER": "a reminder"}


def describe_event(event: Document) -> str:
    """Describe an event in one line, such as `Personal record in Squat. Heaviest load: 80 kg`."""
    data, kind = event["data"], event["type"]
    if kind == "metric_recorded" and "metricName" not in data:
        return f"Recorded metrics in {data['blockName']}"
    unit = data.get("unit", "")
    if unit == "count":
        unit = "reps" if kind == "personal_record" else ""
    count = data.get("blocks", 0)
    values = {
        "item": _ITEM_TYPES.get(data.get("itemType", ""), "an item"),
        "amount": format_number(data.get("value"), unit),
        "record": RECORD_TYPES.get(data.get("recordType", ""), ""),
        "workouts": f"{count} workout{'' if count == 1 else 's'}",
    }
    return str(_TEMPLATES.get(kind, kind)).format_map(data | values)

"""What happened with a client, in words."""

from __future__ import annotations

from coaching_service.core.database.documents import Document
from coaching_service.web.views.items import figure

KINDS = {"heaviest_load": "Heaviest load", "most_reps": "Most repetitions", "estimated_1rm": "Estimated 1RM"}
_EVENTS = {
    "workout_completed": "Completed {blockName}",
    "item_logged": "Logged {item} in {blockName}",
    "form_submitted": "Answered a form in {blockName}",
    "metric_recorded": "{metricName}: {figure}",
    "photo_added": "Photo from the {side}",
    "plan_uploaded": "Plan {number}: {fileName}",
    "personal_record": "Record in {exerciseName}. {record}: {figure}",
    "note_added": "A note was added",
    "program_assigned": "Program {programName}, {workouts}",
}
_ITEMS = {"EXERCISE": "an exercise", "CIRCUIT": "a circuit", "TASK": "a task", "REMINDER": "a reminder"}


def told(event: Document) -> str:
    """An event of the activity feed as a line, such as `Record in Squat. Heaviest load: 80 kg`."""
    data = event["data"]
    kind = event["type"]
    if kind == "metric_recorded" and "metricName" not in data:
        return f"Measured in {data['blockName']}"
    unit = data.get("unit", "")
    if unit == "count":
        unit = "reps" if kind == "personal_record" else ""
    count = data.get("blocks", 0)
    words = {
        "item": _ITEMS.get(data.get("itemType", ""), "an item"),
        "figure": figure(data.get("value"), unit),
        "record": KINDS.get(data.get("recordType", ""), ""),
        "workouts": f"{count} workout{'' if count == 1 else 's'}",
    }
    return str(_EVENTS.get(kind, kind)).format_map(data | words)

"""What an operation did, in words: the heading of a change in the history."""

from __future__ import annotations

import re

# Verbs that are the first word of an operation's name, and whose past says what it did.
_REGULAR_VERBS = re.compile(
    "add|adjust|answer|approve|archive|assign|change|check|clear|complete|confirm|convert|count|create|delete|deliver|"
    "dismiss|duplicate|end|expire|finish|import|mark|move|pause|preview|propose|record|reject|remove|rename|reorder|"
    "replace|restore|resume|review|save|schedule|start|unassign|upload"
)
# The first words of others, and what they did.
_VERBS = {
    "apply": "applied",
    "cancel": "cancelled",
    "copy": "copied",
    "edit": "changed",
    "log": "logged",
    "new": "created",
    "place": "moved",
    "put": "saved",
    "send": "sent",
    "set": "set",
    "shift": "moved",
    "skip": "skipped",
    "stop": "stopped",
    "swap": "swapped",
    "sync": "brought up to date",
    "unarchive": "restored",
    "undo": "undone",
    "update": "changed",
    "upsert": "saved",
    "write": "written",
}
# The usual words for the nouns in the names of operations (docs/glossary.md), in this order.
_NOUNS = {
    "workout blocks": "workouts",
    "workout block": "workout",
    "program block": "program workout",
    "metrics": "metric",
    "check ins": "check-ins",
    "check in": "check-in",
    "wblock": "workout",
    "witem": "workout item",
    "customers": "clients",
    "customer": "client",
    "block": "workout",
    "training max": "training maximum",
    "own": "",
}
# Names that the rule describes badly.
_EXCEPTIONS = {
    "addBlock": "Workout added",
    "answerSession": "Comment sent",
    "requestOwnErasure": "Erasure requested",
    "addForm": "Form added to a workout",
    "addMetrics": "Metric set added to a workout",
    "addReminder": "Reminder added to a workout",
    "addTask": "Task added to a workout",
    "archive": "Client archived",
    "assignSet": "Metric set assigned",
    "bulkAddGroups": "Groups added to clients",
    "bulkAssignTrainer": "Trainer of clients changed",
    "bulkChange": "Clients changed",
    "bulkRemoveGroups": "Groups removed from clients",
    "bulkSendMessage": "Message sent to clients",
    "changeCard": "Planned sets changed",
    "changeDetails": "Client changed",
    "changeNotePin": "Note pinned or unpinned",
    "clearLog": "Log of a workout item cleared",
    "createProgramFromCalendar": "Program created from a calendar",
    "importProgram": "Program imported from a sheet",
    "delete": "Client deleted",
    "deleteExerciseOverride": "Changes of a shared exercise removed",
    "deleteOverride": "Changes of a shared exercise removed",
    "decline": "Invitations declined",
    "invite": "Client invited",
    "inviteCustomer": "Client invited",
    "markClientMessagesRead": "Messages marked as read",
    "markClientResponseReviewed": "Response marked as reviewed",
    "markMessagesRead": "Messages marked as read",
    "markSessionCommentsRead": "Comments marked as read",
    "markOwnMessagesRead": "Messages marked as read",
    "placeItem": "Workout item moved",
    "runCheckedImport": "Clients imported",
    "runHistoryImport": "Training history imported",
    "runOwnImport": "Training history imported",
    "saveAsTemplate": "Template created from a workout",
    "replaceExerciseOverride": "Shared exercise changed",
    "replaceScheduledExercise": "Exercise replaced in workouts",
    "replyToClient": "Message sent",
    "resendConfirmation": "Link to confirm an address sent",
    "restore": "Client restored",
    "saveOverride": "Shared exercise changed",
    "sendFile": "File sent",
    "setVisibility": "Visibility of a day changed",
    "shiftWorkoutBlocks": "Workouts moved to other days",
    "undo": "Change undone",
    "undoCustomerChange": "Change undone",
    "unassignSet": "Metric set unassigned",
    "updateCompany": "Company changed",
    "testDevice": "Test notification sent",
    "turnMailsOff": "Mails turned off",
    "turnDeviceOff": "Notifications of a device turned off",
    "turnDeviceOn": "Notifications of a device turned on",
}


def describe_operation(operation: str) -> str:
    """Describe an operation by the name of its route, tool or form: `updateNote` is `Note changed`.

    A name that begins with an unknown verb is only divided into words.
    """
    if operation in _EXCEPTIONS:
        return _EXCEPTIONS[operation]
    words = _split(operation)
    if not is_described(operation):
        return _capitalize(" ".join(words)) or "Change"
    subject = " ".join(words[1:])
    for noun, usual in _NOUNS.items():
        subject = re.sub(rf"\b{noun}\b", usual, subject)
    return _capitalize(f"{subject.strip()} {_past_of(words[0])}")


def is_described(operation: str) -> bool:
    """Return whether there are words for an operation, beyond its name."""
    words = _split(operation)
    return operation in _EXCEPTIONS or (len(words) > 1 and _past_of(words[0]) is not None)


def _past_of(verb: str) -> str | None:
    return f"{verb.removesuffix('e')}ed" if _REGULAR_VERBS.fullmatch(verb) else _VERBS.get(verb)


def _split(operation: str) -> list[str]:
    """Return the words of a name such as `updateNote` or `update_note`, in lower case, without a leading `bulk`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", operation).replace("_", " ").lower().split()
    return words[1:] if words[:1] == ["bulk"] else words


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]

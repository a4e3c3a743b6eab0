"""The component schemas of the OpenAPI document: names, descriptions, and a form that code generators read."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields

from coaching_service.core.fields import ChangeByStoredType, Variant
from coaching_service.core.ids import IDENTIFIER_PATTERN
from coaching_service.core.validation import Output, Switches

# --- Descriptions of fields and parameters that mean the same everywhere, by name -------------------------------------
# A field that needs a description of its own has it in the `metadata` of its schema, which comes first; where two
# schemas
# use one name for different things, `Schema.field` comes before `field`.


_SIDE_KEY = "The storage key of the {} photo, or null without one."
_SIDE_URL = "A signed link to the {} photo, valid for two hours; null without one."
_SIDE_THUMBNAIL = "A signed link to a small version of the {} photo, valid for two hours; null without one."
_RATE = "Completed workout days of the last {} days, in percent (0 to 100); null without a workout day."

DESCRIPTIONS: dict[str, str] = {
    # Identifiers
    "_id": "The identifier: 24 hexadecimal characters.",
    "id": "The identifier: 24 hexadecimal characters.",
    "assignmentId": "The identifier of the assignment of a program to a client.",
    "companyId": "The identifier of the company.",
    "customerId": "The identifier of the client.",
    "exerciseId": "The identifier of the exercise.",
    "formId": "The identifier of the form.",
    "libraryId": "The identifier of the exercise library.",
    "mediaId": "The identifier of the picture, video or link.",
    "metricId": "The identifier of the metric.",
    "metricUnitId": "The identifier of the unit the metric is measured in.",
    "metricsSetId": "The identifier of the metric set.",
    "noteId": "The identifier of the note.",
    "photoId": "The identifier of the progress photos of a date.",
    "planId": "The identifier of the plan version.",
    "programId": "The identifier of the program.",
    "questionId": "The identifier of the question.",
    "wblockId": "The identifier of the workout block.",
    "witemId": "The identifier of the workout item.",
    "WorkoutBlock.programId": "The program the block belongs to, or was assigned from; null otherwise.",
    "Exercise.companyId": "The company the exercise belongs to; null for a shared exercise.",
    "ExerciseLibrary.companyId": "The company the library belongs to; null for the shared library.",
    "BulkTrainerAssignment.coachId": "The coach to assign; null unassigns.",
    "NewMetric._id": "The identifier of an existing metric that remains in the set; absent for a new one.",
    "NewExerciseMedia._id": "The identifier of an existing entry that remains; absent for a new one.",
    "NewQuestion._id": "The identifier of an existing question that remains in the form; absent for a new one.",
    "ids": "Identifiers of clients. Either this or `filter`.",
    "excludeIds": "Clients to leave out, with `filter` only.",
    # Times
    "createdAt": "When the document was created.",
    "updatedAt": "When the document was last changed.",
    "completedAt": "When the item was completed; null until then.",
    "date": "The date, in the client's time zone.",
    "day": "The day of the program, from 1.",
    "startDate": "The first date, included.",
    "endDate": "The last date, included.",
    "startDay": "The first day of the program, included; 0 is accepted and means 1.",
    "endDay": "The last day of the program, included.",
    "from": "The first date, included.",
    "to": "The last date, included.",
    "birthday": "Date of birth.",
    "timezone": "The IANA name of the time zone.",
    "expiresAt": "When the key stops working; null for never.",
    "expires": "When the link expires, in seconds since 1970.",
    "signature": "The signature of the link.",
    "lastUsedAt": "When it was last used; null for never.",
    "firstLoginDate": "When the client first signed in; null for never.",
    "complianceDate": "The local date the rates were computed on.",
    "scheduledTime": "A time of day `HH:MM` where the client is, or a date and time in ISO 8601: there, too, unless "
    "it names an offset from UTC (`Z`, `+02:00`). The day is always the one of the block.",
    "days": "How many days to move the blocks; negative moves them back.",
    # Pages
    "docs": "The entries of the page.",
    "limit": "The largest number of entries on a page.",
    "page": "The number of the page, from 1.",
    "pageNum": "The number of the page, from 1.",
    "pageSize": "The largest number of entries on the page.",
    "totalPages": "The number of pages, at least 1.",
    "hasPrevPage": "Whether there is a page before this one.",
    "hasNextPage": "Whether there is a page after this one.",
    "prevPage": "The number of the page before this one; null for the first.",
    "nextPage": "The number of the page after this one; null for the last.",
    # People
    "name": "The name.",
    "surname": "The surname.",
    "email": "The e-mail address.",
    "externalId": "The identifier in another system, unique among the records of the same kind; null without one.",
    "phone": "The phone number.",
    "companyName": "The name of the company.",
    "role": "The role of the account.",
    "TrainedMuscle.role": "Whether the muscle does most of the work (`primary`) or helps (`secondary`).",
    "MuscleRole.role": "Whether the muscle does most of the work (`primary`) or helps (`secondary`).",
    "groups": "Names of groups.",
    "assignedTo": "The coach assigned to the client; null for none.",
    "CustomerFilter.assignedTo": "Clients of any of these coaches; `none` stands for clients without one.",
    "CustomerFilter.contains": "Part of a name, surname or e-mail address.",
    "CustomerFilter.groups": "Clients in any of these groups.",
    "archived": "`true` for archived clients or programs, `false` for the others.",
    "isArchived": "Whether it is archived.",
    "customerType": "`SAMPLE` for a client that came with the demo, otherwise `REAL`.",
    "customersScope": "`assigned`: only clients assigned to the employee; `all`: every client of the company.",
    "ApiKeyRestrictions.permissions": "The only permissions the key may use; null for all permissions of its coach.",
    "profilePhotoUrl": "A signed link to the profile photo, valid for two hours; null without one.",
    "sendInvitation": "Whether to send an invitation, if there is an e-mail address.",
    "complianceRate7d": _RATE.format(7),
    "complianceRate30d": _RATE.format(30),
    "complianceRate90d": _RATE.format(90),
    "count": "The number of clients.",
    # Access
    "currentPassword": "The password until now.",
    "password": "The password.",
    "token": "The token from the e-mail or the link.",
    "accessToken": "The token to send as `Authorization: Bearer`.",
    "refreshToken": "The token that renews the session; it can be used once.",
    "tokenType": "Always `Bearer`.",
    "expiresIn": "Seconds until the access token expires.",
    "firstAccessToken": "The token with which the client sets a password for the first time.",
    "key": "The secret of the API key.",
    "prefix": "The first characters of the key.",
    "lastFour": "The last four characters of the key.",
    "restrictions": "What the key may not do although its coach may; null for no restriction.",
    "readOnly": "Whether it may only read.",
    "via": "How the caller signed in.",
    "message": "A message to show.",
    # Bulk
    "dryRun": "Whether to report what would happen and write nothing.",
    "failed": "The clients for which it failed, and why.",
    "version": "The version of the document, from 0; it rises by one with each change.",
    # Training
    "items": "The items, in order.",
    "isRest": "Whether it is a rest day.",
    "isCompleted": "Whether it has been completed.",
    "comment": "A comment on what was done.",
    "pain": "Pain that the client felt. A new text also becomes a health note.",
    "durationMinutes": "How long the session took, in minutes.",
    "sessionRpe": "How hard the session was (rate of perceived exertion, 0 to 10).",
    "exerciseName": "The name of the exercise.",
    "exerciseInstructions": "Instructions for this item; null: the exercise's.",
    "defaultInstructions": "How to do the exercise.",
    "instructions": "How to do the exercise in this circuit.",
    "exerciseSets": "The planned sets.",
    "customerSets": "The sets as the client did them.",
    "supersetId": "Items of a block with the same value are done in alternation.",
    "circuitName": "The name of the circuit.",
    "circuitExercises": "The exercises of one round, in order.",
    "rounds": "How many rounds the circuit has.",
    "round": "The round of the circuit, from 1.",
    "sets": "The sets.",
    "MuscleVolume.sets": "The number of sets; a set counts half for a secondary muscle.",
    "MuscleVolume.reps": "The number of repetitions; they count half for a secondary muscle.",
    "WorkloadPeriod.reps": "The number of repetitions in completed sets.",
    "index": "The position of the set, from 1.",
    "ItemMoveTarget.index": "The position in the target block, from 0.",
    "reps": "Repetitions.",
    "load": "The load, in the company's unit.",
    "seconds": "Seconds.",
    "meters": "Meters.",
    "rpe": "Rate of perceived exertion (1 to 10).",
    "rir": "Repetitions in reserve.",
    "tempo": "The tempo of a repetition.",
    "isWarmup": "Whether it is a warm-up set, which no figure counts.",
    "minPlannedReps": "The smallest number of repetitions.",
    "maxPlannedReps": "The largest number of repetitions.",
    "minPlannedSeconds": "The shortest time, in seconds.",
    "maxPlannedSeconds": "The longest time, in seconds.",
    "plannedMeters": "The distance, in meters.",
    "variables": "The planned quantities with their units, derived from the other fields.",
    "SetVariable.key": "Which quantity it is.",
    "unit": "The unit of the value.",
    "min": "The smallest value, in the unit of the variable.",
    "title": "What to do.",
    "description": "A description.",
    "ReminderFields.message": "The text of the reminder.",
    "NewReminderFields.message": "The text of the reminder.",
    "ItemMove.source": "The block and item to move.",
    "ItemMove.target": "The block and position to move to.",
    "PersonalRecord.source": "`manual`: entered by a coach; `log`: from a log.",
    "blocks": "The number of blocks.",
    "shifted": "The number of blocks that were moved.",
    "isVisible": "Whether the client sees the day.",
    "values": "The recorded values.",
    "value": "The value, in the metric's unit.",
    "ExactValue.value": "The value, in the unit of the variable.",
    "PersonalRecord.value": "The value, in `unit`.",
    "NewPersonalRecord.value": "The value: a load in the company's unit, or a number of repetitions.",
    "PersonalRecordChange.value": "The value: a load in the company's unit, or a number of repetitions.",
    "OneRepMaxEstimate.value": "The estimate, in the `loadUnit` of the session.",
    "type": "The type.",
    "tags": "Tags.",
    "loadUnit": "The unit of loads.",
    "muscleGroups": "The muscle groups.",
    "periods": "The periods, in order; one without training has zeros.",
    "groupBy": "The length of a period.",
    "includeIncomplete": "`true` adds sessions that were scheduled and not done.",
    "dailyCompliance": "Every day of the range, in order.",
    "workoutBlocks": "The blocks of the day.",
    # Libraries
    "aliases": "Other names of the exercise.",
    "level": "The experience it requires; null if not stated.",
    "videoLink": "The address of a video; null without one.",
    "equipment": "The equipment it needs; null for none.",
    "media": "Pictures and videos.",
    "image": "The address of a picture; null without one.",
    "thumbnail": "The address of a small picture; null without one.",
    "url": "The address.",
    "label": "The text of the question.",
    "options": "The options to choose from; empty for other types of questions.",
    "required": "Whether the form cannot be completed without an answer.",
    "questions": "The questions, in order.",
    "answers": "The answers, by question.",
    "formName": "The name of the form.",
    "metrics": "The metrics.",
    "assignAutomatically": "Whether every new client is assigned the set.",
    "shortName": "The symbol of the unit, such as `kg`.",
    "initialValue": "The earliest value by date; null without one.",
    "currentValue": "The latest value by date; null without one.",
    "fileName": "The name of the file.",
    "contentType": "The media type of the file.",
    **{f"{side}Key": _SIDE_KEY.format(side) for side in ("front", "back", "side")},
    **{f"{side}Url": _SIDE_URL.format(side) for side in ("front", "back", "side")},
    **{f"{side}ThumbnailUrl": _SIDE_THUMBNAIL.format(side) for side in ("front", "back", "side")},
}


def _object(description: str, properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "description": description, "properties": properties, "required": required}


def _text(description: str, **limits: str) -> dict[str, str]:
    return {"type": "string", **limits, "description": description}


_STATUS = {"type": "integer", "description": "The HTTP status."}
FIXED_SCHEMAS: dict[str, dict[str, Any]] = {
    "QueuedJob": _object(
        "A job that does what was requested.",
        {"jobId": _text("The identifier of the job.", pattern=IDENTIFIER_PATTERN)},
    ),
    "FieldError": _object(
        "What is wrong with one field of the request.",
        {
            "field": _text("The path of the field, such as `exerciseSets.0.load`."),
            "code": _text("A stable code in upper snake case."),
            "message": _text("What is expected of the field."),
        },
    ),
    "MovedDocument": _object(
        "A document that has been changed since the change to undo.",
        {"kind": _text("The kind of document, such as `workout`."), "_id": _text("Its identifier.")},
    ),
    "Error": _object(
        "A failure. The HTTP status comes first; `code` is stable where it is present.",
        {
            "statusCode": _STATUS,
            "message": {
                "description": "A sentence, or a list of them. Do not depend on the exact text.",
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            },
            "error": _text("The name of the HTTP status."),
            "code": _text("A stable code in upper snake case, such as `NOTE_NOT_FOUND`."),
            "errors": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/FieldError"},
                "description": "Present on a 400 for invalid fields: one entry for each.",
            },
            "permission": _text("With the code `PERMISSION_MISSING`: the permission, such as `customers.edit`."),
            "_id": _text("With the code `EXTERNAL_ID_TAKEN`: the record that has the identifier."),
            "documents": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/MovedDocument"},
                "description": "With the code `VERSION_CONFLICT` of an undo: what has been changed since.",
            },
            "docs": _text("Where the `code` is described. Present with each `code`.", format="uri"),
        },
        *("code", "errors", "permission", "_id", "documents", "docs"),
    ),
    "CredentialError": _object(
        "The credential is missing or not valid. `statusCode` is absent for an invalid API key.",
        {"statusCode": _STATUS, "message": _text("`Unauthorized` or `Invalid API key`.")},
        "statusCode",
    ),
}


def schema_name(schema: Any) -> str:
    """Return the name of a schema's component: the name of its class."""
    if isinstance(schema, str):
        return schema
    return (schema if isinstance(schema, type) else type(schema)).__name__


def legacy_schema_name(code: str) -> str:
    """Return the name of the schema of a legacy failure, such as `LegacyFailureMetricsSetMissing`."""
    return "LegacyFailure" + "".join(word.capitalize() for word in code.split("_"))


def legacy_schema(code: str) -> dict[str, Any]:
    """Return the body of one of the four documented requests that answer 500 with `{code, message}`."""
    return _object(
        "A request that answers 500 permanently and writes nothing: it must not be retried.",
        {
            "code": {"type": "string", "const": code, "description": "The case."},
            "message": _text("What was wrong with the request."),
        },
    )


def variant_attributes(self: OpenAPIConverter, field: fields.Field[Any], **_: Any) -> dict[str, Any]:
    """Return the `oneOf` of a Variant field (an apispec attribute function)."""
    if not isinstance(field, Variant):
        return {}
    resolve = self.resolve_nested_schema
    refs = {word: resolve(schema) for word, schema in field.by_type.items()}  # type: ignore[no-untyped-call]  # apispec is untyped
    mapping = {word: ref["$ref"] for word, ref in refs.items()}
    return {"oneOf": list(refs.values()), "discriminator": {"propertyName": "type", "mapping": mapping}}


def switches_attributes(
    self: OpenAPIConverter, field: fields.Field[Any], *, ret: dict[str, Any], **_: Any
) -> dict[str, Any]:
    """Return the `anyOf` of a Switches field: a boolean or an object (an apispec attribute function)."""
    if not isinstance(field, Switches):
        return {}
    for name in ("allOf", "$ref"):
        ret.pop(name, None)
    return {"anyOf": [{"type": "boolean"}, self.resolve_nested_schema(field.schema)]}  # type: ignore[no-untyped-call]  # apispec is untyped


def describe_schemas(schemas: dict[str, dict[str, Any]], classes: Mapping[str, type[Schema]]) -> None:
    """Add a description to every schema and property that lacks one; `classes` are the schemas by component name."""
    for name, schema in schemas.items():
        declared = classes.get(name)
        if declared is not None:
            text = inspect.getdoc(declared)
            if declared.__doc__ is None and name.endswith("Change"):
                text = "The fields to change; a field that is not sent stays as it is."
            elif declared.__doc__ is None and name.endswith("Page"):
                text = f"A page of a list of {name.removesuffix('Page')}."
            schema.setdefault("description", " ".join((text or "").split()))
            if issubclass(declared, Output):
                schema.pop("additionalProperties", None)
        for field, attributes in schema.get("properties", {}).items():
            description = DESCRIPTIONS.get(f"{name}.{field}") or DESCRIPTIONS.get(field)
            if description and "$ref" not in attributes:
                attributes.setdefault("description", description)


def tag_variants(schemas: dict[str, dict[str, Any]], bodies: Iterable[Any]) -> None:
    """Add the `type` that distinguishes the variants of a ChangeByStoredType; the service knows it and ignores it."""
    for body in bodies:
        if isinstance(body, ChangeByStoredType):
            for word, schema in body.by_type.items():
                description = "The type of the stored item. May be left out: it cannot be changed."
                tag = {"type": "string", "enum": [word], "description": description}
                component = schemas[schema_name(schema)]
                component["properties"] = {"type": tag, **component["properties"]}


def title_parts(document: Mapping[str, Any]) -> None:
    """Add a title to the parts that have no name: generators make types from them.

    It is the name of the schema and of the field, or of the operation and of the parameter: without it, generators
    number the types of what has the same name elsewhere.
    """
    owners = list(document["components"]["schemas"].items())
    for operation in (operation for path in document["paths"].values() for operation in path.values()):
        name = _in_camel_case(operation["operationId"])
        for parameter in operation["parameters"]:
            _title_part(parameter.get("schema", {}), name + _in_camel_case(parameter.get("name", "")))
        owners += [(name, each["schema"]) for each in operation.get("requestBody", {"content": {}})["content"].values()]
    for name, schema in owners:
        for field, part in schema.get("properties", {}).items():
            _title_part(part, name + _in_camel_case(field))


def _title_part(part: dict[str, Any], title: str, *, is_entry: bool = False) -> None:
    inline = [each for key in ("anyOf", "oneOf") for each in part.get(key, ()) if each.get("type", "null") != "null"]
    if part.keys() & {"enum", "properties", "additionalProperties"} or (is_entry and part.keys() & _CONSTRAINTS):
        part["title"] = title
    for each in inline:
        _title_part(each, title + (_in_camel_case(str(each["type"])) if len(inline) > 1 else ""), is_entry=is_entry)
    for field, each in part.get("properties", {}).items():
        _title_part(each, title + _in_camel_case(field))
    for key, suffix in (("items", "Item"), ("additionalProperties", "Value")):
        if isinstance(each := part.get(key), dict):
            _title_part(each, title + suffix, is_entry=True)


_CONSTRAINTS = {"maxLength", "pattern", "maximum", "format", "oneOf", "anyOf", "items"}


def _in_camel_case(field: str) -> str:
    name = field.lstrip("_")
    return name[:1].upper() + name[1:]


def simplify(node: Any) -> None:
    """Rewrite every schema below `node` so that code generators read it as it is meant.

    `default` moves into the description (generators treat a property with a default as required), an `enum` has no
    limits of length, a nullable enum is an `anyOf` with null, and `format: url` is `format: uri`.
    """
    if isinstance(node, list):
        for entry in node:
            simplify(entry)
    elif isinstance(node, dict):
        for key, entry in node.items():
            if key not in ("example", "examples"):
                simplify(entry)
        if isinstance(node.get("type"), str | list) or not node.keys().isdisjoint(("anyOf", "oneOf", "enum")):
            default = node.pop("default", None)
            if default not in (None, "") and "Default:" not in node.get("description", ""):
                word = str(default).lower() if isinstance(default, bool) else default
                node["description"] = f"{node.get('description', '')} Default: {word}.".strip()
            if node.get("format") == "url":
                node["format"] = "uri"
            if "enum" in node:
                node.pop("minLength", None)
                node.pop("maxLength", None)
                if None in node["enum"]:
                    words = [word for word in node.pop("enum") if word is not None]
                    del node["type"]
                    node["anyOf"] = [{"type": "string", "enum": words}, {"type": "null"}]

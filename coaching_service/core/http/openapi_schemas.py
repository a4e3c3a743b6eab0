"""The component schemas of the OpenAPI document: names, descriptions, and a form that code generators read."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields

from coaching_service.core.http.field_descriptions import DESCRIPTIONS
from coaching_service.core.schemas_by_type import ChangeByStoredType, Variant
from coaching_service.core.validation import Output, Switches

_NULL = {"type": "null"}
_FIELD_ERROR = {
    "type": "object",
    "description": "What is wrong with one field of the request.",
    "properties": {
        "field": {"type": "string", "description": "The path of the field, such as `exerciseSets.0.load`."},
        "code": {"type": "string", "description": "A stable code in upper snake case."},
        "message": {"type": "string", "description": "What is expected of the field."},
    },
    "required": ["field", "code", "message"],
}
_MESSAGE = {
    "description": "A sentence, or a list of them. Do not depend on the exact text.",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
}
ERROR_SCHEMAS: dict[str, dict[str, Any]] = {
    "FieldError": _FIELD_ERROR,
    "MovedDocument": {
        "type": "object",
        "description": "A document that has been changed since the change to undo.",
        "properties": {
            "kind": {"type": "string", "description": "The kind of document, such as `workout`."},
            "_id": {"type": "string", "description": "Its identifier."},
        },
        "required": ["kind", "_id"],
    },
    "Error": {
        "type": "object",
        "description": "A failure. The HTTP status comes first; `code` is stable where it is present.",
        "properties": {
            "statusCode": {"type": "integer", "description": "The HTTP status."},
            "message": _MESSAGE,
            "error": {"type": "string", "description": "The name of the HTTP status."},
            "code": {"type": "string", "description": "A stable code in upper snake case, such as `NOTE_NOT_FOUND`."},
            "errors": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/FieldError"},
                "description": "Present on a 400 for invalid fields: one entry for each.",
            },
            "permission": {
                "type": "string",
                "description": "With the code `PERMISSION_MISSING`: the permission, such as `customers.edit`.",
            },
            "_id": {
                "type": "string",
                "description": "With the code `EXTERNAL_ID_TAKEN`: the record that has the identifier.",
            },
            "documents": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/MovedDocument"},
                "description": "With the code `VERSION_CONFLICT` of an undo: what has been changed since.",
            },
        },
        "required": ["statusCode", "message", "error"],
    },
    "CredentialError": {
        "type": "object",
        "description": "The credential is missing or not valid. `statusCode` is absent for an invalid API key.",
        "properties": {
            "statusCode": {"type": "integer", "description": "The HTTP status."},
            "message": {"type": "string", "description": "`Unauthorized` or `Invalid API key`."},
        },
        "required": ["message"],
    },
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
    return {
        "type": "object",
        "description": "A request that answers 500 permanently and writes nothing: it must not be retried.",
        "properties": {
            "code": {"type": "string", "const": code, "description": "The case."},
            "message": {"type": "string", "description": "What was wrong with the request."},
        },
        "required": ["code", "message"],
    }


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
            schema.setdefault("description", _summary(name, declared))
            if issubclass(declared, Output):
                schema.pop("additionalProperties", None)
        for field, attributes in schema.get("properties", {}).items():
            description = DESCRIPTIONS.get(f"{name}.{field}") or DESCRIPTIONS.get(field)
            if description and "$ref" not in attributes:
                attributes.setdefault("description", description)


def _summary(name: str, declared: type[Schema]) -> str:
    if declared.__doc__ is None and name.endswith("Change"):
        return "The fields to change; a field that is not sent stays as it is."
    if declared.__doc__ is None and name.endswith("Page"):
        return f"A page of a list of {name.removesuffix('Page')}."
    return " ".join((inspect.getdoc(declared) or "").split())


def tag_variants(schemas: dict[str, dict[str, Any]], bodies: Iterable[Any]) -> None:
    """Add the `type` that distinguishes the variants of a ChangeByStoredType; the service knows it and ignores it."""
    for body in bodies:
        if isinstance(body, ChangeByStoredType):
            for word, schema in body.by_type.items():
                description = "The type of the stored item. May be left out: it cannot be changed."
                tag = {"type": "string", "enum": [word], "description": description}
                component = schemas[schema_name(schema)]
                component["properties"] = {"type": tag, **component["properties"]}


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
        if _is_schema(node):
            _simplify_schema(node)


def _is_schema(node: dict[str, Any]) -> bool:
    return isinstance(node.get("type"), str | list) or not node.keys().isdisjoint(("anyOf", "oneOf", "enum"))


def _simplify_schema(schema: dict[str, Any]) -> None:
    if "default" in schema:
        _move_default(schema, schema.pop("default"))
    if schema.get("format") == "url":
        schema["format"] = "uri"
    if "enum" in schema:
        schema.pop("minLength", None)
        schema.pop("maxLength", None)
        if None in schema["enum"]:
            words = [word for word in schema.pop("enum") if word is not None]
            del schema["type"]
            schema["anyOf"] = [{"type": "string", "enum": words}, _NULL]


def _move_default(schema: dict[str, Any], default: Any) -> None:
    if default not in (None, "") and "Default:" not in schema.get("description", ""):
        word = {True: "true", False: "false"}.get(default, default) if isinstance(default, bool) else default
        schema["description"] = f"{schema.get('description', '')} Default: {word}.".strip()

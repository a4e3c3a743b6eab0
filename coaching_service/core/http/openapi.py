"""The OpenAPI 3.1 document, made from the declarations that serve and validate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from marshmallow import Schema, fields

from coaching_service import __version__
from coaching_service.core import errors
from coaching_service.core.http.routes import MultipartBody, PlainList, Route
from coaching_service.core.variants import ChangeByStoredType, Variant

_ERROR = {
    "type": "object",
    "properties": {
        "statusCode": {"type": "integer"},
        "message": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "error": {"type": "string"},
        "code": {"type": "string", "description": "Present on the documented permanent failures that answer 500."},
    },
    "required": ["message"],
}
_ABOUT = """\
Clients, training and progress of coaching businesses.

**Credentials.** `X-API-Key` for backends; `Authorization: Bearer` for a session. When both are sent, the bearer
decides.

**Retries.** Reads may be retried. PUT and DELETE say the same when repeated. A POST that creates takes an
`Idempotency-Key`: the same key and body gives the first answer again for 24 hours, with `Idempotent-Replayed: true`.
A 500 with a `code` is permanent; another 500 on a write must not be blindly repeated. `x-retry` says it for each
operation.

**Limits.** A JSON body holds at most 1 MiB unless the operator says otherwise (413); a workout block 100 items.

**Versions.** Changes are additive only: new operations, new optional inputs, new fields in answers. `info.version`
counts them; nothing is removed or renamed. Ignore fields you do not know.
"""
_KEY = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"}
_RETRY = {
    "GET": "Safe to retry.",
    "PUT": "Safe to retry: a repetition leaves the same state, or is 409 with a `version` that has moved on.",
    "PATCH": "Send the `version` you read: a repetition after success is then 409 instead of a second change.",
    "DELETE": "Safe to retry: a repetition is 404.",
    "POST": "Do not blindly retry.",
}
_KEYED_POST = "Send an Idempotency-Key; with it a retry is executed once."
_READ_POST = "Safe to retry."

_IMPLIED: tuple[tuple[type[errors.ServiceError], Callable[[Route], bool]], ...] = (
    (errors.BadRequest, lambda route: bool(route.path_parameters or route.query or route.body or route.multipart)),
    (errors.Unauthorized, lambda route: route.access.audience != "public"),
    (errors.Forbidden, lambda route: route.access.audience not in ("public", "anyone")),
    (errors.NotFound, lambda route: bool(route.path_parameters)),
    (errors.Conflict, lambda route: route.idempotent or route.takes_version),
    (errors.TooLarge, lambda route: route.body is not None or route.multipart is not None),
    (errors.UnsupportedMediaType, lambda route: route.body is not None or route.multipart is not None),
)


def describe(routes: Iterable[Route], tags: Sequence[tuple[str, str]], base_url: str) -> dict[str, Any]:
    """The OpenAPI document of `routes`; `tags` are (name, description) of the features."""
    plugin = MarshmallowPlugin(schema_name_resolver=_name)
    spec = APISpec(
        title="Coaching service",
        version=__version__,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={"description": _ABOUT, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        servers=[{"url": base_url}],
        tags=[{"name": name, "description": about} for name, about in tags],
    )
    converter = plugin.converter
    if converter is None:
        raise RuntimeError("the marshmallow plugin has no converter")
    converter.add_attribute_function(_variant_attributes)  # type: ignore[no-untyped-call]
    spec.components.schema("Error", _ERROR)
    for kind in _kinds(errors.ServiceError):
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        about = (kind.__doc__ or "").split("\n")[0]
        answer: dict[str, Any] = {"description": about, "content": content}
        answer["headers"] = {"X-Request-Id": _text("Also in the service's log.")}
        spec.components.response(kind.__name__, answer)
    spec.components.security_scheme("apiKey", {"type": "apiKey", "in": "header", "name": "X-API-Key"})
    spec.components.security_scheme("session", {"type": "http", "scheme": "bearer"})
    for route in routes:
        spec.path(path=route.path, operations={route.method.lower(): _operation(route)})
    return spec.to_dict()


def _kinds(base: type[errors.ServiceError]) -> list[type[errors.ServiceError]]:
    """What routes answer with; narrower errors, declared where they are raised, answer as the one they are."""
    kinds = [kind for child in base.__subclasses__() for kind in (child, *_kinds(child))]
    return [kind for kind in kinds if kind.__module__ == errors.__name__]


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.documentation,
        "security": _security(route),
        "parameters": _parameters(route),
        "responses": _responses(route),
        "x-access": str(route.access),
        "x-retry": _KEYED_POST if route.idempotent else _RETRY[route.method],
    }
    if route.multipart is not None:
        operation["requestBody"] = _multipart(route.multipart)
    elif route.body is not None:
        content: dict[str, Any] = {"schema": _schema(route.body)}
        if route.example is not None:
            content["example"] = route.example
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {"application/json": content},
        }
    return operation


def _multipart(form: MultipartBody) -> dict[str, Any]:
    """The schema of a multipart body: the file and the text fields."""
    texts = _text_properties(form.schema)
    binary = {"type": "string", "format": "binary", "description": f"One of: {', '.join(form.content_types)}."}
    properties = {form.file_field: binary, **texts}
    required = [name for name, field in form.schema.fields.items() if field.required]
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    return {
        "required": True,
        "content": {"multipart/form-data": {"schema": whole | ({"required": required} if required else {})}},
    }


def _text_properties(schema: Schema) -> dict[str, Any]:
    """The text fields of a form: strings, with what their fields say of them."""
    found = {}
    for name, field in schema.fields.items():
        about = {key: value for key, value in field.metadata.items() if key in ("description", "format", "example")}
        words = getattr(field, "choices", None)
        found[name] = {"type": "string", **about, **({"enum": list(words)} if words else {})}
    return found


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.access.audience == "public":
        return []
    return [{"session": []}] if route.access.session_only else [{"apiKey": []}, {"session": []}]


def _parameters(route: Route) -> list[Any]:
    found: list[Any] = [
        {
            "in": "path",
            "name": wire,
            "required": True,
            "schema": {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"},
        }
        for wire, _ in route.path_parameters
    ]
    if route.query is not None:
        found.append({"in": "query", "schema": route.query})
    if route.idempotent:
        about = "1 to 255 visible ASCII characters; makes a retry safe for 24 hours."
        found.append({"in": "header", "name": "Idempotency-Key", "description": about, "schema": _KEY})
    return found


def _responses(route: Route) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done.", "headers": {"X-Request-Id": _text("Also in the service's log.")}}
    if route.idempotent:
        success["headers"]["Idempotent-Replayed"] = _text("`true` when this is the first answer again.")
    if isinstance(route.returns, PlainList):
        success["content"] = {"application/json": {"schema": {"type": "array", "items": _schema(route.returns.schema)}}}
    elif route.returns is bytes:
        success["content"] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    elif route.returns is not None:
        success["content"] = {"application/json": {"schema": _schema(route.returns)}}
    answers: dict[str, Any] = {str(route.status): success}
    answers |= {str(status): {"description": about} for status, about in route.other_responses.items()}
    kinds: list[type[errors.ServiceError]] = [kind for kind, applies in _IMPLIED if applies(route)]
    kinds += [*route.errors, errors.InternalError]
    for kind in kinds:
        answers[str(kind.status)] = kind.__name__
    return dict(sorted(answers.items()))


def _text(about: str) -> dict[str, Any]:
    return {"description": about, "schema": {"type": "string"}}


def _schema(declared: Any) -> Any:
    """A declared body or answer as apispec resolves it: a schema instance, or a Variant spelled out."""
    if isinstance(declared, Variant):
        refs = {kind: f"#/components/schemas/{_name(schema)}" for kind, schema in declared.by_type.items()}
        discriminator = {"propertyName": "type", "mapping": refs}
        return {"oneOf": list(declared.by_type.values()), "discriminator": discriminator}
    if isinstance(declared, ChangeByStoredType):
        return {"anyOf": list(declared.by_type.values())}
    return declared() if isinstance(declared, type) else declared


def _variant_attributes(self: OpenAPIConverter, field: fields.Field[Any], **_: Any) -> dict[str, Any]:
    if not isinstance(field, Variant):
        return {}
    refs = {kind: self.resolve_nested_schema(schema) for kind, schema in field.by_type.items()}  # type: ignore[no-untyped-call]
    mapping = {kind: ref["$ref"] for kind, ref in refs.items()}
    return {"oneOf": list(refs.values()), "discriminator": {"propertyName": "type", "mapping": mapping}}


def _name(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return (schema if isinstance(schema, type) else type(schema)).__name__

"""The OpenAPI 3.1 document, made from the declarations that serve and validate."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from coaching_service import __version__
from coaching_service.core import auth, errors
from coaching_service.core.fields import ChangeByStoredType, Variant
from coaching_service.core.http.handlers import find_version_read, takes_if_match, takes_if_none_match
from coaching_service.core.http.routes import MultipartBody, PlainList, Route
from coaching_service.core.ids import IDENTIFIER_PATTERN
from coaching_service.core.media import sendable_types
from coaching_service.documentation import openapi_schemas
from coaching_service.people.changes.events import SentEvent

# --- The first text of the OpenAPI document: what all operations have in common ---------------------------------------


INTRODUCTION = """\
Clients, training and progress of coaching businesses.

**Credentials.** `X-API-Key` for backends; `Authorization: Bearer` for a session. When both are sent, the bearer
decides.

**Retries.** Reads may be retried. PUT and DELETE leave the same state when repeated. A POST that changes data takes an
`Idempotency-Key`: the same key and body returns the first answer again for 24 hours, with `Idempotent-Replayed: true`;
while the first request is running it is 409 with `Retry-After`. Operations about keys, the team and invitations refuse
it (400 `IDEMPOTENCY_NOT_SUPPORTED`); sign-in and impersonation ignore it.
A 503 with the code `UNAVAILABLE` has changed nothing, so any request may be sent again after `Retry-After`. With
`OUTCOME_UNKNOWN` a change may have been saved, or a part of it: look before you repeat it, unless it had an
`Idempotency-Key` (then it has `Retry-After`) or is a PUT or DELETE.
A 500 with a `code` is permanent; another 500 on a write must not be blindly repeated. `x-retry` states it for each
operation, and `x-retry-policy` in a word: `safe`, `idempotencyKey`, `version` or `never`.

**Limits.** A JSON body holds at most 1 MiB unless the operator sets another limit (413); a workout block 100 items.
The operator may limit the requests a minute of each key and session: then every response to it has `RateLimit-Policy`
and `RateLimit` (`"requests";r=12;t=1`: 12 remain, and another one is available in 1 second), and 429 says in
`Retry-After` when to continue.

**Dry runs.** With `dryRun: true` in the body, an operation that has this field returns what it would do and writes
nothing. Every other operation that writes refuses `dryRun` with 400.

**Strictness.** Unknown query parameters and body fields are ignored. With the header `Prefer: handling=strict`, which
every operation accepts (`#/components/parameters/Prefer`), they are 400 with the code `UNKNOWN_FIELD`, and the response
has `Preference-Applied: handling=strict`. Send it while you develop.

**Jobs.** A bulk operation on more than 500 clients, or with `Prefer: respond-async`, is 202 with a `jobId`, and
`Preference-Applied: respond-async` if it was preferred. So is the undo of such a batch.

**Versions of records.** A response with one record has its `version` in the `ETag`. PUT, PATCH and DELETE with that
value as `If-Match` change nothing if the record has another version by now: 412 `VERSION_CONFLICT`. A `version` in the
body does the same, with 409. PUT by-external-id with `If-None-Match: *` only creates (412 `ALREADY_EXISTS`). An
operation that cannot keep one of these headers refuses it (400 `NOT_SUPPORTED`).

**Bytes.** JSON of more than 1 kB is compressed for `Accept-Encoding: gzip`. Operations with a 304 send an `ETag`, which
`If-None-Match` takes.

**Versions.** Changes are additive only: new operations, new optional inputs, new fields in responses. `info.version`
counts them; nothing is removed or renamed. Ignore fields you do not know.
"""

_IDEMPOTENCY_KEY = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x21-\x7e]+$"}
# Whether an operation may be repeated: a word for programs and a sentence for people, by method.
_RETRY = {
    "GET": ("safe", "Safe to retry."),
    "PUT": ("safe", "Safe to retry: a repetition leaves the same state, or is 409 if `version` has moved on."),
    "PATCH": (
        "version",
        "Send the `version` you read: a repetition after success is then 409 instead of a second change.",
    ),
    "DELETE": ("safe", "Safe to retry: a repetition is 404."),
    "POST": ("never", "Do not blindly retry."),
}
_RETRY_WITH_KEY = ("idempotencyKey", "Send an Idempotency-Key; with it a retry is executed once.")
_NOT_MODIFIED = 304
_TEXT_ATTRIBUTES = ("description", "format", "example", "x-enum-varnames")  # of the text fields of forms
DRY_RUN_EXAMPLE = " dryRun"  # after the operationId, in the recorded examples
_SUCCESS = {
    200: "The request succeeded.",
    201: "The new document.",
    202: "The work has been queued.",
    204: "Deleted; no body.",
}
# Described once, in `components`: every response may have them, or those that refer to them.
_SHARED_HEADERS = {
    "ETag": "The version of the content: of a file to send as `If-None-Match`, of a record as `If-Match` of its next "
    "change.",
    "Preference-Applied": "The preferences of the header `Prefer` that were applied: `handling=strict`, and "
    "`respond-async` with 202.",
    "RateLimit": 'What remains of the limit of requests, if there is one: `"requests";r=12;t=1`.',
    "RateLimit-Policy": 'The limit of requests, if there is one: `"requests";q=600;w=60`.',
    "X-Change-Id": "The change, or the batch of changes, that the request has made, if it changed coaching data.",
    "Retry-After": "Whole seconds to wait before the request is sent again. With 409: the first request with the same "
    "`Idempotency-Key` is still running.",
}
_ERROR_HEADERS: dict[type[errors.ServiceError], tuple[str, ...]] = {
    errors.TooManyRequests: ("Retry-After", "RateLimit", "RateLimit-Policy"),
    errors.Conflict: ("Retry-After",),
    errors.Unavailable: ("Retry-After",),
}
# Not a parameter of each operation: clients that are generated from the document send it with every request, or never.
_PREFER = {
    "description": "`handling=strict`: unknown query parameters and body fields are 400 instead of ignored. "
    "`respond-async`: a bulk operation or an undo is a job, and the response is 202.",
    "schema": {"type": "string", "example": "handling=strict"},
}
_IF_NONE_MATCH = {
    "description": "The `ETag` of the content that the caller has, or several: 304 if it has not changed.",
    "schema": {"type": "string"},
}
_IF_MATCH = {
    "description": "The `ETag` of the record that the change is based on: 412 `VERSION_CONFLICT`, and nothing is "
    "written, if it has another version by now.",
    "schema": {"type": "string", "example": '"3"'},
}
_MUST_CREATE = {
    "description": "`*`: 412 `ALREADY_EXISTS`, and nothing is written, if the record exists.",
    "schema": {"type": "string", "enum": ["*"]},
}
_ACCEPTED = {
    "description": "More than 500 clients or changes, or `Prefer: respond-async`: a job does it. GET "
    "/coach/jobs/{jobId} returns its progress, and the same result with `batchId`.",
    "content": {
        "application/json": {
            "schema": {"$ref": "#/components/schemas/QueuedJob"},
            "example": {"jobId": "66f0c0ffee0000000000abcd"},
        }
    },
}


def _has_body(route: Route) -> bool:
    return route.body is not None or route.multipart is not None


_ALWAYS_POSSIBLE: tuple[tuple[type[errors.ServiceError], Callable[[Route], bool]], ...] = (
    (errors.BadRequest, lambda _: True),  # every operation takes headers that may be invalid, and `Prefer`
    (errors.Unauthorized, lambda route: route.access.audience != "public"),
    (errors.Forbidden, lambda route: route.access.audience not in ("public", "anyone") or route.access.session_only),
    (errors.NotFound, lambda route: bool(route.path_parameters)),
    (errors.RequestTimeout, _has_body),
    (errors.Conflict, lambda route: route.idempotent or route.takes_version),
    (errors.TooLarge, _has_body),
    (errors.UnsupportedMediaType, _has_body),
    (errors.TooManyRequests, lambda route: route.access.audience != "public"),
    (errors.InternalError, lambda _: True),
    (errors.Unavailable, lambda _: True),
    (errors.StorageFull, lambda route: route.stores),
)


_WEBHOOK_HEADERS = {
    "webhook-id": "The message; the same in every attempt.",
    "webhook-timestamp": "Seconds since 1970.",
    "webhook-signature": "`v1,` and the base64 HMAC-SHA-256 of `ID.TIMESTAMP.BODY`; several are separated by a space.",
}


def describe(
    routes: Iterable[Route],
    tags: Sequence[tuple[str, str]],
    base_url: str,
    webhooks: Mapping[str, SentEvent] | None = None,
) -> dict[str, Any]:
    """Return the OpenAPI document of `routes`; `tags` are the (name, description) of the features.

    `webhooks`: what is sent to them, by type of event; an operation returns the same events.
    """
    plugin = MarshmallowPlugin(schema_name_resolver=openapi_schemas.schema_name)
    spec = APISpec(
        title="Coaching service",
        version=__version__,
        openapi_version="3.1.0",
        plugins=[plugin],
        info={"description": INTRODUCTION, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
        servers=[{"url": base_url}],
        tags=[{"name": name, "description": description} for name, description in tags],
    )
    if plugin.converter is None:
        raise RuntimeError("the marshmallow plugin has no converter")
    for attributes in (openapi_schemas.variant_attributes, openapi_schemas.switches_attributes):
        plugin.converter.add_attribute_function(attributes)  # type: ignore[no-untyped-call]  # apispec is untyped
    for name, schema in openapi_schemas.FIXED_SCHEMAS.items():
        spec.components.schema(name, schema)
    declared = list(routes)
    for code in sorted({code for route in declared for code in _legacy_codes(route)}):
        spec.components.schema(openapi_schemas.legacy_schema_name(code), openapi_schemas.legacy_schema(code))
    spec.components.security_scheme("apiKey", {"type": "apiKey", "in": "header", "name": "X-API-Key"})
    spec.components.security_scheme("session", {"type": "http", "scheme": "bearer"})
    spec.components.security_scheme("oauth2", _OAUTH)
    spec.components.parameter("Prefer", "header", {"name": "Prefer", **_PREFER})
    spec.components.parameter("IfMatch", "header", {"name": "If-Match", **_IF_MATCH})
    spec.components.parameter("IfNoneMatch", "header", {"name": "If-None-Match", **_IF_NONE_MATCH})
    spec.components.parameter("MustCreate", "header", {"name": "If-None-Match", **_MUST_CREATE})
    for name, description in _SHARED_HEADERS.items():
        spec.components.header(name, _header(description))
    not_modified = {"description": "The caller has the current content.", "headers": _refer_to_headers("ETag")}
    spec.components.response("NotModified", not_modified)
    for error in sorted({error for route in declared for error in _errors(route, declared)}, key=lambda e: e.__name__):
        schema = {"$ref": f"#/components/schemas/{'CredentialError' if error is errors.Unauthorized else 'Error'}"}
        response = {
            "description": (error.__doc__ or "").split("\n")[0],
            "headers": _headers() | _refer_to_headers(*_ERROR_HEADERS.get(error, ())),
            "content": {"application/json": {"schema": schema}},
        }
        spec.components.response(error.__name__, response)
    for route in declared:
        spec.path(path=route.path, operations={route.method.lower(): _operation(route, declared)})
    document: dict[str, Any] = json.loads(json.dumps(spec.to_dict()))  # without parts that two schemas share
    document["webhooks"] = {name: {"post": _webhook(name, event)} for name, event in (webhooks or {}).items()}
    document["tags"] += [_RECEIVED] if webhooks else []
    schemas = document["components"]["schemas"]
    openapi_schemas.describe_schemas(schemas, {name: key[0] for key, name in plugin.converter.refs.items()})
    openapi_schemas.tag_variants(schemas, [route.body for route in declared])
    operations = (operation for path in document["paths"].values() for operation in path.values())
    for parameter in (parameter for operation in operations for parameter in operation["parameters"]):
        if parameter.get("in") == "query" and parameter["schema"].get("type") == "object":
            parameter |= {"style": "deepObject", "explode": True}
        if not {"description", "$ref"} & parameter.keys() and parameter["name"] in openapi_schemas.DESCRIPTIONS:
            parameter["description"] = openapi_schemas.DESCRIPTIONS[parameter["name"]]
    openapi_schemas.simplify(document)
    openapi_schemas.title_parts(document)
    return document


# A tag of its own: some generators write one file for each tag of operations, and one for each of webhooks.
_RECEIVED = {"name": "Received events", "description": "What is sent to webhooks."}


def _webhook(event_type: str, event: SentEvent) -> dict[str, Any]:
    """Return the request that a webhook receives for a type of event."""
    return {
        "operationId": f"receive{event.schema}",
        "tags": [_RECEIVED["name"]],
        "summary": f"`{event_type}`",
        "description": f"{event.description} Sent as Standard Webhooks describes it: verify the signature.",
        "security": [],
        "parameters": [
            {"in": "header", "name": name, "required": True, "description": description, "schema": {"type": "string"}}
            for name, description in _WEBHOOK_HEADERS.items()
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": f"#/components/schemas/{event.schema}"},
                    "example": event.example,
                }
            },
        },
        "responses": {
            "2XX": {"description": "The event was received, within 15 seconds."},
            "410": {"description": "The receiver is gone: the webhook is disabled."},
            "429": {"description": "The event is sent again later, not before `Retry-After`; so for 503."},
        },
    }


@cache
def response_examples() -> dict[str, Any]:
    """Response bodies by operation, recorded from the running service by a test."""
    recorded = files("coaching_service.documentation").joinpath("response_examples.json").read_text("utf-8")
    examples: dict[str, Any] = json.loads(recorded)
    return examples


def _operation(route: Route, routes: Sequence[Route]) -> dict[str, Any]:
    security: list[dict[str, list[str]]] = [{"session": []}]
    if route.access.audience == "public":
        security = []
    elif not route.access.session_only and route.access.audience != "customer":
        needed = product(*auth.scopes_of(route.access, writes=route.writes))
        of_applications = [] if route.access.owner_only else [{"oauth2": list(scopes)} for scopes in needed]
        security = [{"apiKey": []}, *security, *of_applications]
    policy, advice = _RETRY_WITH_KEY if route.idempotent else _RETRY[route.method if route.writes else "GET"]
    operation: dict[str, Any] = {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.documentation,
        "security": security,
        "parameters": _parameters(route, routes),
        "responses": _responses(route, routes),
        "x-access": str(route.access),
        "x-retry": advice,
        "x-retry-policy": policy,
    }
    if route.deprecated is not None:
        operation["deprecated"] = True
        operation["description"] += f"\n\n{route.deprecated.notice}"
    if route.multipart is not None:
        operation["requestBody"] = _multipart(route.multipart, required=not route.body_optional)
    elif route.body is not None:
        content: dict[str, Any] = {"schema": _schema(route.body)}
        if route.example is not None:
            content["example"] = route.example
        operation["requestBody"] = {"required": not route.body_optional, "content": {"application/json": content}}
    return operation


def _multipart(form: MultipartBody, *, required: bool) -> dict[str, Any]:
    """Return a multipart body: the file, and the text fields, which are strings on the wire."""
    types = ", ".join(sendable_types(form.content_types))
    file = {"type": "string", "format": "binary", "description": f"One of: {types}."}
    properties: dict[str, Any] = {form.file_field: file}
    for name, field in form.schema.fields.items():
        common = {"description": openapi_schemas.DESCRIPTIONS[name]} if name in openapi_schemas.DESCRIPTIONS else {}
        own = {key: field.metadata[key] for key in field.metadata if key in _TEXT_ATTRIBUTES}
        words = getattr(field, "choices", None)
        properties[name] = {"type": "string", **common, **own, **({"enum": list(words)} if words else {})}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    needed = [form.file_field] if form.file_required else []
    needed += [name for name, field in form.schema.fields.items() if field.required]
    if needed:
        schema["required"] = needed
    encoding = {form.file_field: {"contentType": types}}
    return {"required": required, "content": {"multipart/form-data": {"schema": schema, "encoding": encoding}}}


_VERBS = {"read": "Read", "write": "Create, change and delete"}
_AREAS = {"customers": "clients, their plans and what they have done"}
_SCOPES = {
    scope: f"{_VERBS[verb]} {_AREAS.get(area, area)}"
    for scope in auth.REST_SCOPES
    for area, _, verb in [scope.partition(":")]
    if verb
} | {
    auth.WEBHOOKS_SCOPE: "Webhooks of the application, and samples of events",
    auth.OFFLINE_SCOPE: "Access until it is revoked: a refresh token",
}
_OAUTH = {
    "type": "oauth2",
    "description": "The access token of an application that a coach has allowed (docs: Applications).",
    "flows": {
        "authorizationCode": {
            "authorizationUrl": "/oauth/authorize",
            "tokenUrl": "/oauth/token",
            "refreshUrl": "/oauth/token",
            "scopes": _SCOPES,
        }
    },
}


def _parameters(route: Route, routes: Sequence[Route]) -> list[Any]:
    patterns = {name: field.metadata["pattern"] for name, field in route.path_fields.items()}
    descriptions = {**openapi_schemas.DESCRIPTIONS, **route.path_descriptions}
    parameters: list[Any] = []
    for name, _ in route.path_parameters:
        schema = {"type": "string", "pattern": patterns.get(name, IDENTIFIER_PATTERN)}
        text = descriptions[name]
        parameters.append({"in": "path", "name": name, "required": True, "description": text, "schema": schema})
    if route.query is not None:
        parameters.append({"in": "query", "schema": route.query})
    if route.idempotent:
        description = "1 to 255 visible ASCII characters; makes a retry safe for 24 hours."
        parameters.append(
            {"in": "header", "name": "Idempotency-Key", "description": description, "schema": _IDEMPOTENCY_KEY}
        )
    if _NOT_MODIFIED in route.other_responses:
        parameters.append("IfNoneMatch")
    if takes_if_match(route, find_version_read(route, routes)):
        parameters.append("IfMatch")
    if takes_if_none_match(route):
        parameters.append("MustCreate")
    return parameters


def _responses(route: Route, routes: Sequence[Route]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": _SUCCESS[route.status], "headers": _success_headers(route)}
    binary = {"schema": {"type": "string", "format": "binary"}}
    files: dict[str, Any] = dict.fromkeys(route.media_types, binary)
    if route.returns is bytes:
        success["content"] = files or {"application/octet-stream": binary}
    elif route.returns is not None:
        returned: dict[str, Any] = {"schema": _returned(route.returns)}
        if route.operation_id in response_examples():
            returned["example"] = response_examples()[route.operation_id]
        success["content"] = {"application/json": returned, **files}
    responses: dict[str, Any] = {str(route.status): success}
    if route.upserts:
        responses |= {str(status): {**success, "description": _SUCCESS[status]} for status in (200, 201)}
    if route.may_be_job:
        headers = {**_success_headers(route), **_refer_to_headers("Preference-Applied")}
        responses["202"] = {**_ACCEPTED, "headers": headers}
    if route.takes_dry_run and route.status == 201:
        # It has the schema of the operation, so that clients get one type for both.
        what = "what the operation would do. Nothing is written, and what would be new has null as identifier."
        content: dict[str, Any] = {"schema": _returned(route.returns)}
        example = response_examples().get(f"{route.operation_id}{DRY_RUN_EXAMPLE}")
        if example is not None and not _has_null_identifier(example):  # the schema is that of stored records
            content["example"] = example
        content = {"application/json": content}
        responses["200"] = {"description": f"With `dryRun`: {what}", "headers": _headers(), "content": content}
    responses |= {
        str(status): "NotModified" if status == _NOT_MODIFIED else {"description": description}
        for status, description in route.other_responses.items()
    }
    responses |= {str(error.status): error.__name__ for error in _errors(route, routes)}
    if codes := _legacy_codes(route):
        names = [*map(openapi_schemas.legacy_schema_name, codes), "Error"]
        schema = {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]}
        text = f"Permanent with the `code` {' or '.join(codes)}: the request must be corrected. Otherwise a defect."
        content = {"application/json": {"schema": schema}}
        responses["500"] = {"description": text, "headers": _headers(), "content": content}
    return dict(sorted(responses.items()))


def _success_headers(route: Route) -> dict[str, Any]:
    headers = _headers()
    if route.reports_as_of:
        headers["X-As-Of"] = {
            "description": "90 seconds before the request: the `updatedSince` of the next reading. Of several pages, "
            "the one of the first.",
            "schema": {"type": "string", "format": "date-time"},
        }
    if route.writes and route.access.audience != "public":
        headers |= _refer_to_headers("X-Change-Id")
    if route.idempotent:
        headers["Idempotent-Replayed"] = _header("`true` when this is the first answer again.")
    if route.deprecated is not None:
        headers["Deprecation"] = _header("The time from which the operation is deprecated: `@` and seconds since 1970.")
        headers["Sunset"] = _header("The time from which the operation may be gone, as a date of HTTP.")
    if _NOT_MODIFIED in route.other_responses or route.is_versioned:
        headers |= _refer_to_headers("ETag")
    return headers


def _has_null_identifier(value: Any) -> bool:
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    is_new = isinstance(value, dict) and "_id" in value and value["_id"] is None
    return is_new or any(_has_null_identifier(entry) for entry in entries)


def _returned(returns: Any) -> Any:
    if isinstance(returns, PlainList):
        return {"type": "array", "items": _schema(returns.schema)}
    return _schema(returns)


def _errors(route: Route, routes: Sequence[Route]) -> list[type[errors.ServiceError]]:
    """Return the errors that a route can respond with, one for each status: the common base class of several."""
    possible = [error for error, applies in _ALWAYS_POSSIBLE if applies(route)]
    possible += [error for error in route.errors if error is not errors.LegacyFailure]
    if takes_if_match(route, find_version_read(route, routes)):
        possible.append(errors.PreconditionFailed)
    # A path with a parameter can spell a literal path that has other methods, which is then 405.
    segments = route.path.split("/")
    literal: dict[str, set[str]] = {}
    for other in routes if route.path_parameters else ():
        others = other.path.split("/")
        matches = (ours == theirs or ours.startswith("{") for ours, theirs in zip(segments, others, strict=False))
        if len(others) == len(segments) and other.path != route.path and all(matches):
            literal.setdefault(other.path, set()).add(other.method)
    if any(route.method not in methods for methods in literal.values()):
        possible.append(errors.MethodNotAllowed)
    return list({error.status: error for error in possible}.values())


def _legacy_codes(route: Route) -> list[str]:
    return sorted({*route.legacy_codes, *(code for code, _ in route.legacy_id_errors.values())})


def _headers() -> dict[str, Any]:
    return {"X-Request-Id": _header("The identifier of the request, also in every log line about it.")}


def _refer_to_headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}


def _schema(declared: Any) -> Any:
    """Return a declared body or response as apispec resolves it: a schema instance, or the schemas of a Variant."""
    if isinstance(declared, Variant | ChangeByStoredType):
        if isinstance(declared, ChangeByStoredType):  # `type` may be left out: it cannot tell them apart
            return {"anyOf": list(declared.by_type.values())}
        named = {word: openapi_schemas.schema_name(schema) for word, schema in declared.by_type.items()}
        refs = {word: f"#/components/schemas/{name}" for word, name in named.items()}
        return {"oneOf": list(declared.by_type.values()), "discriminator": {"propertyName": "type", "mapping": refs}}
    return declared() if isinstance(declared, type) else declared

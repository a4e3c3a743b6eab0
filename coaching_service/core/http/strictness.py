"""The preferences of a caller (RFC 7240): `handling=strict`, unknown names are errors, and `respond-async`, jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web
from marshmallow import Schema

from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.schemas_by_type import ChangeByStoredType, DeferredChange, Variant, find_unknown_fields
from coaching_service.core.validation_messages import UNKNOWN_FIELD, sentence

_ACCEPTED = 202
STRICT = "handling=strict"
RESPOND_ASYNC = "respond-async"
IS_STRICT = web.RequestKey("is_strict", bool)
PREFERS_JOB = web.RequestKey("prefers_job", bool)


def prefers_strict(request: web.Request) -> bool:
    """Return whether the first `handling` preference of a request is `strict`."""
    return next((value == "strict" for name, value in _preferences(request) if name == "handling"), False)


def prefers_job(request: web.Request) -> bool:
    """Return whether a request has the preference `respond-async`."""
    return any(name == RESPOND_ASYNC for name, _ in _preferences(request))


def list_applied(request: web.Request, status: int) -> list[str]:
    """Return the preferences of a request that its response, with this status, follows."""
    applied = {STRICT: request.get(IS_STRICT), RESPOND_ASYNC: request.get(PREFERS_JOB) and status == _ACCEPTED}
    return [name for name, is_applied in applied.items() if is_applied]


def _preferences(request: web.Request) -> Iterator[tuple[str, str]]:
    for header in request.headers.getall("Prefer", ()):
        for preference in header.split(","):
            name, _, value = preference.partition(";")[0].partition("=")
            yield name.strip().lower(), value.strip().strip('"').lower()


def reject_unknown_parameters(schema: Schema | None, request: web.Request) -> None:
    """Raise InvalidFields if the request has a query parameter that `schema` does not have."""
    known = schema.fields if schema is not None else {}
    _reject(_unknown(name for name in request.query if name not in known), is_query=True)


def reject_unknown_names(names: Iterable[str]) -> None:
    """Raise InvalidFields for parts of a multipart body that the operation does not have."""
    _reject(_unknown(names))


def reject_unknown_fields(schema: Schema | Variant | ChangeByStoredType, data: Any, loaded: Any) -> None:
    """Raise InvalidFields if the body `data` has a field that `schema` does not have.

    The fields of a body whose type is stored are checked when that type is known: `loaded` is set to do so.
    """
    if isinstance(schema, ChangeByStoredType):
        if isinstance(loaded, DeferredChange):
            loaded.is_strict = True
        return
    _reject(list(find_unknown_fields(schema, data)))


def _unknown(names: Iterable[str]) -> list[FieldError]:
    return [{"field": name, "code": UNKNOWN_FIELD.code, "message": str(UNKNOWN_FIELD)} for name in dict.fromkeys(names)]


def _reject(errors: list[FieldError], *, is_query: bool = False) -> None:
    if errors:
        raise InvalidFields(errors, sentence(errors[0]) if is_query else None)

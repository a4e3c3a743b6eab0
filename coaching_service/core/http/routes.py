"""The declaration of a route. The server, the OpenAPI document, permissions and the generated tests all read it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from functools import cached_property
from typing import IO, Any, Literal, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from aiohttp import web
from marshmallow import Schema, fields

from coaching_service.core import fields as core_fields
from coaching_service.core.audit import kind_of_path
from coaching_service.core.auth import Access, within
from coaching_service.core.database.context import Schedule
from coaching_service.core.errors import ServiceError
from coaching_service.core.external_identity import Upserted
from coaching_service.core.list_selection import CursorPage, Page, cursor_page_of, page_of
from coaching_service.core.media import SizeLimit
from coaching_service.core.query import FieldNames
from coaching_service.core.text import camel_case, snake_case
from coaching_service.core.validation import Input


@dataclass(frozen=True)
class Deprecation:
    """The end of an operation, for the declaration of its route.

    `since`: the day (UTC) from which it is deprecated. `sunset`: the first day (UTC) on which it may be gone.
    `instead`: what to use, as the end of the sentence "Use ...".
    """

    since: date
    sunset: date
    instead: str

    @property
    def notice(self) -> str:
        """The sentences in the API document."""
        return f"Deprecated since {self.since}, removed on {self.sunset} or later. Use {self.instead}."

    def headers(self) -> dict[str, str]:
        """Return the headers of each response: `Deprecation` in seconds since 1970, `Sunset` as a date of HTTP."""
        since, sunset = (datetime.combine(day, time(), UTC) for day in (self.since, self.sunset))
        return {"Deprecation": f"@{int(since.timestamp())}", "Sunset": format_datetime(sunset, usegmt=True)}


Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)
# A validated body, by the names of its fields: the schema of the route knows their types.
Body = Mapping[str, object]
RequestClass = Literal["database", "bulk", "held", "unlimited"]

DEFAULT_STATUS = {"GET": 200, "POST": 201, "PUT": 200, "PATCH": 200, "DELETE": 204}


@dataclass(frozen=True)
class PlainList:
    """A response that is a plain array of `schema`."""

    schema: type[Schema]


@dataclass(frozen=True)
class ReceivedFile:
    """A file that was sent and is not stored: its name, and its content, readable while the request is handled."""

    name: str
    content: IO[bytes]


@dataclass(frozen=True)
class MultipartBody:
    """A multipart request body: the name of its file field, the accepted content types, and its text fields.

    `fields`: a TypedDict or schema; without it the handler receives the file only.
    `size_limit`: which of the configured limits applies to each file. `file_required`: the operation needs the file.
    `more_files`: the names of further file fields, which only forms of the web application have. `text_bytes`: of each
    text field. `is_stored`: the handler receives a StoredFile, which it attaches; otherwise a ReceivedFile, which is
    read and forgotten.
    """

    file_field: str
    content_types: tuple[str, ...]
    fields: type | Schema | None = None
    size_limit: SizeLimit = "photo"
    file_required: bool = False
    more_files: tuple[str, ...] = ()
    text_bytes: int = 10_000
    is_stored: bool = True

    @cached_property
    def schema(self) -> Schema:
        """The schema of the text fields."""
        if isinstance(self.fields, Schema):
            return self.fields
        return Input() if self.fields is None else core_fields.input_of(self.fields)()

    @property
    def file_fields(self) -> tuple[str, ...]:
        """The names of all file fields."""
        return (self.file_field, *self.more_files)

    @property
    def text_fields(self) -> frozenset[str]:
        """The names of the text fields."""
        return frozenset(self.schema.fields)

    @property
    def list_fields(self) -> frozenset[str]:
        """The names of the text fields that may be repeated."""
        return frozenset(name for name, each in self.schema.fields.items() if isinstance(each, fields.List))


def list_of(model: Any) -> PlainList:
    """Return the declaration of a response that is a plain array of a TypedDict or a schema."""
    return PlainList(core_fields.output_of(model))


@dataclass(frozen=True)
class Route:
    """One operation: its path, who may call it, its inputs and its response."""

    method: str
    path: str
    access: Access
    handler: Handler
    tag: str
    status: int
    # A schema, a Variant, `list_of(schema)`, `bytes` for a Download, or None for no body. Like `query` and `body` it
    # follows from the TypedDict in the signature of the handler, if it is not declared.
    returns: type[Schema] | PlainList | core_fields.Variant | type[bytes] | None
    query: Schema | None = None
    body: Schema | core_fields.Variant | core_fields.ChangeByStoredType | None = None
    # A multipart body, instead of `body`.
    multipart: MultipartBody | None = None
    errors: tuple[type[ServiceError], ...] = ()
    # Accepts an `Idempotency-Key`: by default each POST of a coach or client that writes, unless it needs a session.
    idempotent: bool = False
    # Rejects a request with an `Idempotency-Key`: by default each other such POST.
    refuses_key: bool = False
    # Spans several transactions: the handler receives the `claim` of the key (or None) and claims each step, so that a
    # retry continues where the first request stopped.
    resumable: bool = False
    # A dry run (`dryRun` in the body, which the handler does not receive) is the operation in a transaction that is
    # rolled back. Handlers of other bodies with `dryRun` do it themselves.
    rolls_back: bool = False
    # Body fields that the schema does not have are errors without `Prefer` too.
    rejects_unknown_fields: bool = False
    body_optional: bool = False
    # The owner of the schedule that the operation changes: requests that change it wait for one another. Its identifier
    # is in the path, or a field of the body; without it nothing is locked. Clients lock their own.
    locks: Schedule | None = None
    # Which concurrency limit applies: `database`, `bulk` (long-running work), `held` (it waits, and uses the database
    # in `ctx.turn`), or `unlimited` (password hashing has a limit of its own).
    request_class: RequestClass = "database"
    # Further successful statuses, with their descriptions.
    other_responses: Mapping[int, str] = field(default_factory=dict)
    # A request body for the API document.
    example: Any = None
    # Path parameters with a documented legacy failure for a malformed identifier: its code and message.
    legacy_id_errors: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Names in the path, and the arguments of the handler; set from `path`.
    path_parameters: tuple[tuple[str, str], ...] = field(default=())
    # The operation in the API document, such as `createWorkoutItem`; by default the handler's name.
    operation_id: str = ""
    # The codes of its other documented legacy failures.
    legacy_codes: tuple[str, ...] = ()
    # A POST that changes nothing, which read-only credentials may call.
    read_only: bool = False
    # The content types of a Download, which a handler with another result may return on request.
    media_types: tuple[str, ...] = ()
    # The path parameters that have no common description.
    path_descriptions: Mapping[str, str] = field(default_factory=dict)
    # The fields of path parameters that are not identifiers.
    path_fields: Mapping[str, fields.Field[Any]] = field(default_factory=dict)
    # By default if the handler returns Upserted: the response is 201 if the record is new, else 200.
    upserts: bool = False
    # The operation will be removed: the API document and the headers of each response say so.
    deprecated: Deprecation | None = None
    # The handler awaits nothing but the database: it runs on one worker thread, which also encodes its result as JSON
    # (not with `Idempotency-Key`).
    on_worker_thread: bool = False
    # The operation deletes something, as each DELETE does, so that it is possible on a full disk.
    deletes: bool = False
    # `fields` in the query names the fields of the record, or of each in the list, that the response has.
    selects_fields: bool = False
    # The handler has no query of its own, and the query of the route has only `fields`.
    selects_only: bool = False

    @cached_property
    def kind(self) -> str:
        """What of a client's record the operation returns, for the audit log."""
        return kind_of_path(self.path)

    @property
    def may_be_job(self) -> bool:
        """Whether the operation may become a job, so that the response is 202."""
        return self.resumable and self.request_class == "bulk"

    @property
    def summary(self) -> str:
        """The first sentence of the handler's docstring."""
        return self.documentation.split("\n\n", 1)[0].replace("\n", " ")

    @property
    def documentation(self) -> str:
        """The handler's docstring."""
        return inspect.getdoc(self.handler) or ""

    @property
    def takes_version(self) -> bool:
        """Whether the body may carry the version of the record the change is based on."""
        return self._has_body_field("version")

    @property
    def is_versioned(self) -> bool:
        """Whether the response is one record with a version."""
        schemas = self.returns.by_type.values() if isinstance(self.returns, core_fields.Variant) else (self.returns,)
        return any("version" in getattr(schema, "_declared_fields", ()) for schema in schemas)

    @property
    def takes_dry_run(self) -> bool:
        """Whether the body may have `dryRun`: what the operation would do, and nothing is written."""
        return self._has_body_field("dryRun")

    def _has_body_field(self, name: str) -> bool:
        if self.multipart is not None:
            return name in self.multipart.text_fields
        if self.body is None:
            return False
        schemas = [self.body] if isinstance(self.body, Schema) else self.body.by_type.values()
        return any(name in schema.fields for schema in schemas)

    @property
    def reports_as_of(self) -> bool:
        """Whether the operation reads what has changed since a time, and returns the time for the next reading."""
        return self.query is not None and "updatedSince" in self.query.fields

    @property
    def writes(self) -> bool:
        """Whether the operation changes anything."""
        return self.method != "GET" and not self.read_only

    @property
    def stores(self) -> bool:
        """Whether the operation needs space: it changes something other than a session, and deletes nothing."""
        deletes = self.deletes or self.method == "DELETE"
        return self.writes and not (deletes or self.path.startswith("/auth/"))


ROUTE = web.RequestKey("route", Route)


def deprecation_headers(request: web.Request) -> dict[str, str]:
    """Return the headers of a response to `request`: none if its operation is not deprecated."""
    route = request.get(ROUTE)
    return {} if route is None or route.deprecated is None else route.deprecated.headers()


class Routes:
    """The routes of one feature, under one prefix.

    The signature of a handler says what its query and body are (a TypedDict), and what it returns: a TypedDict, a list,
    Page or CursorPage of one, or None. The options `query`, `body` and `returns` are for other schemas.
    `path_descriptions` describes the path parameters that only this feature has, by name. `locks`: of each write.
    `scope_area`: see `Access`.
    """

    def __init__(
        self,
        prefix: str,
        *,
        tag: str,
        path_descriptions: Mapping[str, str] | None = None,
        locks: Schedule | None = None,
        scope_area: str = "",
    ) -> None:
        self.prefix, self.tag, self.locks, self.scope_area = prefix, tag, locks, scope_area
        self.path_descriptions = path_descriptions or {}
        self.declared: list[Route] = []

    def get(self, path: str, *, access: Access, **options: Any) -> Callable[[H], H]:
        """Declare a read."""
        return self._declare("GET", path, access, options)

    def post(self, path: str, *, access: Access, **options: Any) -> Callable[[H], H]:
        """Declare a POST: 201, or `status=200` for an action that creates nothing."""
        return self._declare("POST", path, access, options)

    def put(self, path: str, *, access: Access, **options: Any) -> Callable[[H], H]:
        """Declare a PUT."""
        return self._declare("PUT", path, access, options)

    def patch(self, path: str, *, access: Access, **options: Any) -> Callable[[H], H]:
        """Declare a PATCH."""
        return self._declare("PATCH", path, access, options)

    def delete(self, path: str, *, access: Access, **options: Any) -> Callable[[H], H]:
        """Declare a DELETE: 204, no body; or `status=200` with a body."""
        return self._declare("DELETE", path, access, options)

    def _declare(self, method: str, path: str, access: Access, options: dict[str, Any]) -> Callable[[H], H]:
        access = within(self.scope_area, access) if self.scope_area else access
        status = options.pop("status", DEFAULT_STATUS[method])
        writes = method == "POST" and not options.get("read_only") and access.audience in ("coach", "customer")
        options.setdefault("idempotent", writes and not access.session_only and not options.get("refuses_key"))
        options.setdefault("refuses_key", writes and not options["idempotent"])
        options.setdefault("locks", None if method == "GET" else self.locks)
        full_path = self.prefix + path
        parameters = tuple((wire, snake_case(wire)) for wire in re.findall(r"{(\w+)}", full_path))

        def declare(handler: H) -> H:
            if not handler.__doc__:
                raise TypeError(f"{method} {full_path}: the handler needs a docstring, the summary in the document")
            result = get_type_hints(handler)["return"]
            returns = options.pop("returns", result)  # what is declared, or the type that the handler returns
            if returns is type(None):
                returns = None
            elif get_origin(returns) in _LISTS:
                returns = _LISTS[get_origin(returns)](*get_args(returns))
            elif is_typeddict(returns):
                returns = core_fields.output_of(returns)
            options.setdefault("upserts", result is Upserted)
            other_result = options.get("upserts") or options.get("resumable") or returns in (bytes, None)
            if options.get("on_worker_thread") and other_result:
                raise TypeError(f"{method} {full_path}: a worker thread encodes plain JSON results only")
            options.setdefault("operation_id", camel_case(handler.__name__))
            declared = core_fields.with_schemas(options, handler)
            if declared.get("selects_fields"):
                # The query also takes `fields`: names of fields of what is returned, or of each entry of a list.
                own = declared.get("query")
                schema = returns.schema if isinstance(returns, PlainList) else returns
                entries = schema._declared_fields.get("docs")
                nested = entries.inner if isinstance(entries, fields.List) else None
                known = (type(nested.schema) if isinstance(nested, fields.Nested) else schema)._declared_fields
                base = Input if own is None else type(own)
                name = f"{schema.__name__}Fields" if own is None else base.__name__
                selecting: type[Schema] = type(name, (base,), {"fields": FieldNames(known), "__doc__": base.__doc__})
                declared |= {"query": selecting(), "selects_only": own is None}
            self.declared.append(
                Route(
                    method,
                    full_path,
                    access,
                    handler,
                    self.tag,
                    status,
                    returns,
                    path_parameters=parameters,
                    path_descriptions=self.path_descriptions,
                    **declared,
                )
            )
            return handler

        return declare


_LISTS: dict[Any, Callable[[Any], Any]] = {list: list_of, Page: page_of, CursorPage: cursor_page_of}


def routes_of(groups: Sequence[Routes]) -> list[Route]:
    """Return every route of the groups, in the order of their declaration."""
    return [route for group in groups for route in group.declared]

"""Properties of every declared operation."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema_rs
import pytest
from marshmallow import Schema, ValidationError, fields

from coaching_service import features
from coaching_service.core.errors import ServiceError
from coaching_service.core.http.request_parsing import validate_body
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.mcp import tools_of
from coaching_service.core.media import CSV
from coaching_service.core.validation import AbsenceDate, CalendarDate, Date, SearchedDate, field_errors
from coaching_service.people.customers.models import Birthday
from coaching_service.web import views
from tests.support.client import UNKNOWN, CoachClient, document
from tests.support.declared_world import World, small_picture
from tests.support.sampled import proof

ROUTES = routes_of(features.ROUTES)
PICTURE = ("small.png", small_picture())
CLIENTS = ("clients.csv", b"name\nAna\n")
SHEETS = {"/coach/programs/import": ("plan.csv", b"Day,Exercise,Sets,Reps\n1,Row,3,8\n")}
SNAPSHOT = Path(__file__).parent / "openapi.json"


def test_the_source_has_the_name_of_every_operation() -> None:
    """As it is in the API document, or as the name of its handler: `createNote` is `create_note`."""
    source = "\n".join(module.read_text("utf-8") for module in Path(features.__file__).parent.rglob("*.py"))
    handlers = set(re.findall(r"async def (\w+)\(", source))
    for route in ROUTES:
        handler = re.sub(r"(?<!^)(?=[A-Z])", "_", route.operation_id).lower()
        assert handler in handlers or f'"{route.operation_id}"' in source, route.operation_id


def test_the_source_has_the_name_of_every_form() -> None:
    """As the name of its handler, or in `Pages.act` and `Pages.confirm`; those of Records follow from a record's."""
    records = {
        "program",
        "template",
        "exercise",
        "form",
        "metric_set",
        "employee",
        "api_key",
        "webhook",
        "message_template",
    }
    declared_once = {f"{verb}_{record}" for verb in ("update", "delete") for record in records}
    source = "".join(module.read_text("utf-8") for module in (Path(features.__file__).parent / "web").rglob("*.py"))
    forms = {page.name for page in views.list_pages() if page.method == "POST" and page.preview_of is None}
    assert {"log_exercise", "add_task", "archive_program"} < forms
    missing = {name for name in forms - declared_once if f"def {name}(" not in source and f'"{name}"' not in source}
    assert missing == set()


def dates_in(schema: Schema, path: str = "") -> Iterator[tuple[str, Date]]:
    """The fields of a schema that are dates, by path."""
    for name, each in schema.fields.items():
        inner = each.inner if isinstance(each, fields.List) else each
        if isinstance(inner, Date):
            yield f"{path}{name}", inner
        elif isinstance(inner, fields.Nested):
            yield from dates_in(inner.schema, f"{path}{name}.")


BODIES = {f"{route.method} {route.path}": route.body for route in ROUTES if isinstance(route.body, Schema)}
TOOLS = {f"TOOL {tool.name}": tool.takes for tool in tools_of(features.TOOLS)}
FORMS = {f"FORM {page.path}": page.form for page in views.list_pages() if isinstance(page.form, Schema)}


def test_every_date_that_is_stored_has_bounds() -> None:
    """Contract 1: no body, tool or form accepts what a program sends for "no date"; a search stores none."""
    dates = [(name, *each) for name, schema in (BODIES | TOOLS | FORMS).items() for each in dates_in(schema)]
    searched = {f"{name} {path}" for name, path, field in dates if isinstance(field, SearchedDate)}
    assert searched == {
        "FORM /app/customers/{customerId}/progress/sets/{metricsSetId}/metrics/{metricId}/delete date",
        "FORM /train/measurements/{metricsSetId}/{metricId}/delete date",
        "TOOL log_workout date",
    }
    assert len(dates) > 60
    for name, path, field in dates:
        for day in ("0001-01-01", "1899-12-31", "2200-01-01", "9999-12-31"):
            if not isinstance(field, SearchedDate):
                with pytest.raises(ValidationError) as refused:
                    field.deserialize(day)
                assert field_errors(refused.value)[0]["code"] == "DATE_OUT_OF_RANGE", (name, path, day)


@pytest.mark.parametrize(
    ("kind", "first", "years"),
    [(CalendarDate, "1950-01-01", 10), (AbsenceDate, "1950-01-01", 5), (Birthday, "1900-01-01", 0)],
)
def test_kinds_of_dates(kind: type[Date], first: str, years: int) -> None:
    """Contract 1 and 20: a birthday may be tomorrow, where it is tomorrow already."""
    today = datetime.now(UTC).date()
    last = today.replace(year=today.year + years, day=min(today.day, 28))  # of 29 February: no such day in other years
    for day in (first, str(last)):
        assert kind().deserialize(day) == day
    for day in (str(date.fromisoformat(first) - timedelta(days=1)), str(last + timedelta(days=5))):
        with pytest.raises(ValidationError):
            kind().deserialize(day)


def test_every_operation_is_documented() -> None:
    for route in ROUTES:
        name, operation = route.operation_id, document()["paths"][route.path][route.method.lower()]
        assert operation["summary"].endswith("."), name
        assert operation["x-access"] == str(route.access), name
        assert operation["x-retry"], name
        assert operation["x-retry-policy"] in {"safe", "idempotencyKey", "version", "never"}, name
        assert str(route.status) in operation["responses"], name
        assert {"400", "404"} <= set(operation["responses"]) or not route.path_parameters, name
        if route.access.audience != "public":
            assert "401" in operation["responses"], name
            assert operation["security"], name


def test_every_body_has_an_example_that_is_accepted() -> None:
    for route in ROUTES:
        if route.body is not None:
            assert route.example is not None, route.operation_id
            try:
                validate_body(route.body, route.example)
            except (ServiceError, ValidationError) as error:
                pytest.fail(f"{route.operation_id}: {error}")


def test_the_document_is_valid_openapi() -> None:
    """Validate the document as OpenAPI 3.1, and its schemas as JSON Schema."""
    package = find_spec("openapi_spec_validator")
    assert package is not None and package.origin is not None
    schema = json.loads((Path(package.origin).parent / "resources/schemas/v3.1/schema.json").read_text("utf-8"))
    jsonschema_rs.Draft202012Validator(schema).validate(document())
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    jsonschema_rs.meta.validate(dialect | {"$defs": document()["components"]["schemas"]})
    names = [operation["operationId"] for path in document()["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names)) == len(ROUTES)


@proof
def test_a_validator_accepts_the_document() -> None:
    """It also compares the parameters with the paths, and follows references; it takes three seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the validator's own
        # Its import makes grammars for two seconds, which each process that collects tests would do.
        import_module("openapi_spec_validator").OpenAPIV31SpecValidator(document()).validate()


def test_document_equals_its_snapshot() -> None:
    """After an intended change: coaching-service openapi | python3 -m json.tool > tests/contract/openapi.json."""
    published = {key: value for key, value in document().items() if key != "servers"}
    assert published == {k: v for k, v in json.loads(SNAPSHOT.read_text()).items() if k != "servers"}


_NOTHING = {"date": "2026-01-05"}  # for parameters that are not identifiers


def fill_path(route: Route, identifiers: dict[str, str]) -> str:
    """The path of the route with these identifiers, or an unknown one for a parameter without.

    An identifier may be of one operation only ("rejectProposal/proposalId"), or of the paths that begin with a parameter.
    """
    path = route.path
    for wire, _ in route.path_parameters:
        keys = (f"{route.operation_id}/{wire}", f"{route.path_parameters[0][0]}/{wire}", wire)
        known = next((identifiers[key] for key in keys if key in identifiers), None)
        path = path.replace(f"{{{wire}}}", known or _NOTHING.get(wire, UNKNOWN))
    return path


async def call(client: CoachClient, route: Route, path: str, own: World, headers: dict[str, str] | None = None) -> Any:
    """Call a route with its example, the identifiers of `own` in it, and the required query parameters only.

    Uses a session where the route needs one, and a client's session where it is for clients.
    """
    client = await client_for(client, route, own)
    dry = route.multipart is not None and route.example.get("dryRun") == "true"
    return await client.send(route.method, path, headers=headers, dry=dry, **request_options(route, own))


def request_options(route: Route, own: World) -> dict[str, Any]:
    """The required query parameters of a route, and its example with the identifiers of `own` in it."""
    query = {
        name: parameter["schema"].get(
            "enum", [{"integer": "1", "boolean": "false"}.get(_type(parameter), "2026-03-02")]
        )[0]
        for name, parameter in _parameters(route).items()
        if parameter.get("required")
    }
    options: dict[str, Any] = {"params": query}
    if route.multipart is not None:
        options["data"] = aiohttp.FormData(route.example, default_to_multipart=True)
        name, content = SHEETS.get(route.path, CLIENTS) if CSV in route.multipart.content_types else PICTURE
        options["data"].add_field(route.multipart.file_field, content, filename=name)
    elif route.body is not None:
        options["json"] = put_identifiers(route.example, identifiers_for(route, own))
    return options


async def client_for(client: CoachClient, route: Route, own: World) -> CoachClient:
    """The client that may call a route: in a session where it needs one, as a client of `own` where it is for those."""
    if route.access.audience == "customer":
        return await client.as_client({"_id": own["customerId"]})
    return await client.interactive() if route.access.session_only else client


def identifiers_for(route: Route, own: World) -> World:
    """The identifiers of `own` by parameter, those under the owner in the path of the route first."""
    owner = f"{route.path_parameters[0][0]}/" if route.path_parameters else "/"
    return own | {key.removeprefix(owner): value for key, value in own.items() if key.startswith(owner)}


def put_identifiers(example: Any, own: World) -> Any:
    """The example with the identifiers in it replaced by those of `own`."""
    if isinstance(example, list):
        return [put_identifiers(entry, own) for entry in example]
    if isinstance(example, dict):
        return {key: own[key] if key in own else put_identifiers(value, own) for key, value in example.items()}
    return example


def _parameters(route: Route) -> dict[str, Any]:
    operation = document()["paths"][route.path][route.method.lower()]
    return {p["name"]: p for p in operation["parameters"] if p.get("in") == "query"}


def _type(parameter: dict[str, Any]) -> str:
    declared = parameter["schema"].get("type", "")
    return declared if isinstance(declared, str) else declared[0]


# A file's link is its own credential. An external identifier that is unknown creates a record.
OF_RECORDS = [
    r
    for r in ROUTES
    if r.access.audience != "public" and any(wire not in r.path_fields for wire, _ in r.path_parameters)
]


async def test_a_malformed_path_identifier_names_its_parameter(
    shared_company: CoachClient, shared_world: World
) -> None:
    for route in ROUTES:
        for wire in (wire for wire, _ in route.path_parameters if wire not in route.path_fields):
            path = fill_path(route, {wire: "malformed"})
            reply = await call(shared_company, route, path, shared_world)
            if wire in route.legacy_id_errors:  # one of the documented legacy failures
                assert reply.refused(500)["code"] == route.legacy_id_errors[wire][0], route.path
            else:
                assert wire in reply.refused(400)["message"], route.path

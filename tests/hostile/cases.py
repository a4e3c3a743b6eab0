"""The hostile cases, generated from the declarations of routes, tools and pages; no database is needed to list them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from marshmallow import Schema, ValidationError, fields

from coaching_service import features
from coaching_service.core.fields import ChangeByStoredType, Variant
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.mcp import Tool, tools_of
from coaching_service.core.validation import REQUIRED, Choice, Date, Identifier, field_errors
from coaching_service.web import views
from coaching_service.web.pages import Page

ROUTES = routes_of(features.ROUTES)
TOOLS = tools_of(features.TOOLS)
PAGES = views.list_pages()
# Neither is text: the tests of each operation send other values of these types.
_SHORT = (Choice, Date)

Steps = tuple[str | int, ...]


def operators_in_names(name: str) -> tuple[str, ...]:
    """The name of a parameter as frameworks write an operator with it."""
    return f"{name}[$ne]", f"{name}[$regex]"


# What is not a string where one belongs: operators of a query, and values that compare as everything.
OPERATORS: tuple[Any, ...] = ({"$gt": ""}, [{"$ne": None}])
# Strings that some interpreter reads.
TEXTS = (
    "$where:'; return true; var a='{{7*7}}<script>alert(1)</script>",
    "\u0000../../etc/passwd",
    "\r\nX-Injected: yes\ufeff\u202e\U000e0041\uffff",
)
PATH_TEXTS = ("%7B%22%24ne%22%3A1%7D", "%00", "..%2F..%2Fcoach%0d%0aX-Injected%3A1")
QUERY_TEXTS = ('{"$gt":""}', "\u0000\r\nX-Injected: yes", "(a+)+$[", "9" * 400)


@dataclass(frozen=True)
class Leaf:
    """A field of a body that has no fields of its own; 0 in `steps` is the entry of a list."""

    steps: Steps
    field: fields.Field[Any]
    variants: tuple[tuple[Steps, str], ...] = ()

    @property
    def is_identifier(self) -> bool:
        return isinstance(self.field, Identifier)

    @property
    def is_string(self) -> bool:
        return isinstance(self.field, fields.String)

    @property
    def is_text(self) -> bool:
        return self.is_string and not isinstance(self.field, (Identifier, *_SHORT))

    def put_into(self, body: Any, value: Any) -> Any:
        """A copy of `body` with `value` in the field; objects and lists that are missing are added."""
        changed = deepcopy(body) if isinstance(body, dict) else {}
        for steps, kind in self.variants:
            if _get(changed, (*steps, "type")) != kind:  # the other fields are those of another type
                if steps:
                    _set(changed, steps, {"type": kind})
                else:
                    changed = {"type": kind}
        _set(changed, self.steps, value)
        return changed


# What the objects need that a case adds to a body.
_SET = {"type": "reps", "minPlannedReps": 8}
SAMPLES: dict[str, Any] = {
    "archived": False,
    "circuitName": "Finisher",
    "exerciseSets": [_SET],
    "label": "How was it?",
    "name": "Body",
    "questions": [{"label": "How was it?"}],
    "sets": [_SET],
    "type": "link",
    "url": "https://media.example.com/squat",
}


def complete(schema: Schema | Variant | ChangeByStoredType, body: Any, samples: dict[str, Any]) -> Any:
    """The body with the fields that it lacks, from `samples` by their names."""
    for _ in range(4):
        try:
            if isinstance(schema, ChangeByStoredType):
                return body
            schema.load(body)
        except ValidationError as error:
            for each in field_errors(error):
                steps = tuple(int(step) if step.isdigit() else step for step in each["field"].split("."))
                if each["code"] == REQUIRED.code and steps[-1] in samples:
                    _set(body, steps, deepcopy(samples[str(steps[-1])]))
    return body


def _set(target: Any, steps: Steps, value: Any) -> None:
    for step, following in pairwise(steps):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            if not target:
                target.append(empty)
            target[:] = target[:1]
        elif not isinstance(target.get(step), type(empty)):
            target[step] = empty
        target = target[step]
    if isinstance(steps[-1], int):
        target[:] = [value]
    else:
        target[steps[-1]] = value


def _get(target: Any, steps: Steps) -> Any:
    for step in steps:
        target = (target[:1] or [None])[0] if isinstance(step, int) and isinstance(target, list) else target
        target = target.get(step) if isinstance(step, str) and isinstance(target, dict) else target
    return target


def leaves_of(schema: Schema | Variant | ChangeByStoredType) -> Iterator[Leaf]:
    """The fields of a body, those of nested objects, of each variant and of the entries of lists included."""
    if isinstance(schema, Schema):
        yield from _of_schema(schema, (), ())
    elif isinstance(schema, Variant):
        yield from _of_field(schema, (), ())
    else:
        seen: set[Steps] = set()
        for variant in schema.by_type.values():
            for leaf in _of_schema(variant, (), ()):
                if leaf.steps not in seen:
                    seen.add(leaf.steps)
                    yield leaf


def _of_schema(schema: Schema, steps: Steps, variants: tuple[tuple[Steps, str], ...]) -> Iterator[Leaf]:
    for name, field in schema.fields.items():
        yield from _of_field(field, (*steps, field.data_key or name), variants)


def _of_field(field: fields.Field[Any], steps: Steps, variants: tuple[tuple[Steps, str], ...]) -> Iterator[Leaf]:
    if isinstance(field, fields.Nested):
        yield from _of_schema(field.schema, steps, variants)
    elif isinstance(field, fields.List):
        yield from _of_field(field.inner, (*steps, 0), variants)
    elif isinstance(field, Variant):
        for kind, schema in field.by_type.items():
            yield from _of_schema(schema, steps, (*variants, (steps, kind)))
    else:
        yield Leaf(steps, field, variants)


@dataclass(frozen=True)
class BodyCase:
    """One operation, and one field of its body."""

    route: Route
    leaf: Leaf

    def __str__(self) -> str:
        return f"{self.route.method} {self.route.path} {'.'.join(map(str, self.leaf.steps))}"


@dataclass(frozen=True)
class ParameterCase:
    """One operation, and one parameter of its path or query."""

    route: Route
    parameter: str

    def __str__(self) -> str:
        return f"{self.route.method} {self.route.path} {self.parameter}"


@dataclass(frozen=True)
class ToolCase:
    """One tool, and one of its arguments."""

    tool: Tool
    leaf: Leaf

    def __str__(self) -> str:
        return f"{self.tool.name} {'.'.join(map(str, self.leaf.steps))}"


@dataclass(frozen=True)
class FormCase:
    """One page or form, and one field of its query or form."""

    page: Page
    leaf: Leaf

    def __str__(self) -> str:
        return f"{self.page.method} {self.page.path} {'.'.join(map(str, self.leaf.steps))}"


@cache
def body_cases() -> list[BodyCase]:
    """Every field of every JSON body."""
    return [BodyCase(route, leaf) for route in ROUTES if route.body is not None for leaf in leaves_of(route.body)]


def identifiers_in_bodies() -> list[BodyCase]:
    """The fields that name a document."""
    return [case for case in body_cases() if case.leaf.is_identifier and case.route.access.audience != "public"]


# What belongs to one client, program or workout: another one's is unknown there, even in the same company.
OF_ONE_OWNER = {
    "wblockId", "witemId", "circuitId", "noteId", "recordId", "photoId", "planId", "messageId", "checkInId",
    "assignmentId", "mediaId", "deliveryId", "metricId",
}  # fmt: skip


@cache
def owned_identifiers() -> list[ParameterCase]:
    """Every identifier in a path of what another client, program or exercise of the company has too."""
    return [
        case
        for case in path_cases()
        if case.parameter in OF_ONE_OWNER
        and (case.route.path_parameters[0][0] != case.parameter or case.route.access.audience == "customer")
    ]


def of_key(route: Route) -> bool:
    """Whether an employee may call an operation with a key."""
    return route.access.audience == "coach" and not (route.access.session_only or route.access.owner_only)


@cache
def outside_scope() -> list[ParameterCase]:
    """Every operation on a client that an employee may call with a key."""
    return [case for case in path_cases() if case.parameter == "customerId" and of_key(case.route)]


def is_searched(case: ParameterCase) -> bool:
    """Whether a parameter of a query finds records: by an identifier, a cursor, or a text."""
    assert case.route.query is not None
    field = case.route.query.fields[case.parameter]
    inner = field.inner if isinstance(field, fields.List) else field
    return isinstance(inner, fields.String) and not isinstance(inner, _SHORT)


@cache
def path_cases() -> list[ParameterCase]:
    """Every identifier in a path that needs a credential."""
    return [
        ParameterCase(route, wire)
        for route in ROUTES
        if route.access.audience != "public"
        for wire, _ in route.path_parameters
        if wire not in route.path_fields
    ]


@cache
def query_cases() -> list[ParameterCase]:
    """Every parameter of every query of an operation that needs a credential."""
    return [
        ParameterCase(route, field.data_key or name)
        for route in ROUTES
        if route.query is not None and route.access.audience != "public"
        for name, field in route.query.fields.items()
    ]


@cache
def searched_parameters() -> list[ParameterCase]:
    """Every parameter of a query that finds records."""
    return [case for case in query_cases() if is_searched(case)]


@cache
def tool_cases() -> list[ToolCase]:
    """Every argument of every tool."""
    return [ToolCase(tool, leaf) for tool in TOOLS for leaf in leaves_of(tool.takes)]


@cache
def form_cases() -> list[FormCase]:
    """Every text of each form and of the query of each page inside the application."""
    return [
        FormCase(page, leaf)
        for page in PAGES
        if page.access.audience in ("coach", "customer")
        for schema in (page.schema, page.query)
        if schema is not None
        for leaf in leaves_of(schema)
        if leaf.is_text
    ]


@dataclass(frozen=True)
class PageCase:
    """One page or form, and one identifier in its path."""

    page: Page
    parameter: str

    def __str__(self) -> str:
        return f"{self.page.method} {self.page.path} {self.parameter}"


@cache
def pages_with_identifiers() -> list[PageCase]:
    """Every identifier in the path of a page or form."""
    return [
        PageCase(page, wire) for page in PAGES if page.access.audience != "public" for wire, _ in page.path_parameters
    ]


OF_COACHES = [route for route in ROUTES if route.access.audience in ("coach", "anyone")]
OF_CLIENTS = [route for route in ROUTES if route.access.audience in ("customer", "anyone")]
WITH_PERMISSION = [route for route in OF_COACHES if route.access.permissions or route.access.any_permission]
WITH_CREDENTIAL = [route for route in ROUTES if route.access.audience != "public"]
# The tokens that are no credential of REST.
TOKENS = (
    "first access",
    "invitation",
    "confirmation",
    "refresh",
    "device",
    "assistant",
    "assistant's refresh",
    "calendar",
)


def numbers() -> dict[str, int]:
    """The number of hostile values by subject; what is sent only to compare with is not counted.

    A usual run sends some of them, all fields of a body in one request.
    """
    texts, operators = len(TEXTS), len(OPERATORS)
    return {
        "identifiers of another company in paths": len(path_cases()),
        "identifiers of another client in paths": len(owned_identifiers()),
        "identifiers of another company in bodies": len(identifiers_in_bodies()),
        "identifiers of another company in queries": len(searched_parameters()),
        "clients outside a scope in paths": 2 * len(outside_scope()),
        "operators in bodies": operators * sum(case.leaf.is_string for case in body_cases()),
        "operators in queries": sum(len(operators_in_names(case.parameter)) for case in query_cases()),
        "texts in bodies": texts * sum(case.leaf.is_text for case in body_cases()),
        "texts in queries": len(QUERY_TEXTS) * len(query_cases()),
        "texts in paths": len(PATH_TEXTS) * len(path_cases()),
        "identifiers of another company in tools": sum(case.leaf.is_identifier for case in tool_cases()),
        "operators in tools": operators * len(tool_cases()),
        "texts in tools": texts * sum(case.leaf.is_text for case in tool_cases()),
        "identifiers of another company in pages": len(pages_with_identifiers()),
        "texts in pages": len(form_cases()),
        "revoked credentials": 4 * len(OF_COACHES) + 2 * len(WITH_PERMISSION) + 2 * len(OF_CLIENTS),
        "tokens for something else": len(WITH_CREDENTIAL),
    }

"""Operators of queries and hostile texts in every path, query and body of REST: refused, or stored as they are.

Each field and each parameter has one of them, by its name; the proofs send it all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from zlib import crc32

from coaching_service.core.fields import ChangeByStoredType
from coaching_service.core.http.routes import Route
from tests.contract.test_declared import request_options
from tests.hostile.cases import (
    OPERATORS,
    PATH_TEXTS,
    QUERY_TEXTS,
    SAMPLES,
    TEXTS,
    BodyCase,
    Leaf,
    ParameterCase,
    ToolCase,
    body_cases,
    complete,
    operators_in_names,
    path_cases,
    query_cases,
)
from tests.hostile.conftest import Caller, Victim
from tests.hostile.test_foreign_identifiers import with_one
from tests.support.client import Reply
from tests.support.declared_world import World
from tests.support.sampled import MORE

# What saves each of its entries by itself.
BY_ENTRY = (
    "/coach/customers/batch",
    "/coach/customers/{customerId}/wblocks/upsert",
    "/coach/customers/{customerId}/logs/upsert",
)
# Contract 3: the path of a personal record.
LEGACY = "PERSONAL_RECORD_ID_INVALID"


def body_with(route: Route, own: World, values: Mapping[Leaf, Any]) -> Any:
    """The example of the operation with these values in its fields."""
    body = request_options(route, own)["json"]
    body = {name: each for name, each in body.items() if name not in ("version", "dryRun")}
    for leaf, value in values.items():
        body = leaf.put_into(body, value)
    assert route.body is not None
    return complete(route.body, body, SAMPLES | own)


def sample(case: BodyCase | ParameterCase | ToolCase, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """One of the values, by the name of the field, and in the proofs all of them."""
    first = crc32(str(case).encode()) % len(values)
    return values if MORE > 1 else values[first : first + 1]


def together(cases: Iterable[BodyCase], values: tuple[Any, ...]) -> Iterator[tuple[Route, dict[Leaf, Any]]]:
    """For each operation, the values that the fields of its body get at the same time.

    So for every third variant of the body; operations that take the same workouts have others of them.
    """
    bodies: dict[tuple[str, Any], tuple[Route, list[BodyCase]]] = {}
    for case in cases:
        key = (case.route.operation_id, case.leaf.variants)
        bodies.setdefault(key, (case.route, []))[1].append(case)
    for (_, variants), (route, of_body) in bodies.items():
        if MORE == 1 and variants and crc32(f"{route.operation_id} {variants}".encode()) % 3 != 2:
            continue
        for chosen in zip(*(sample(case, values) for case in of_body), strict=True):
            yield route, dict(zip((case.leaf for case in of_body), chosen, strict=True))


def without_named(left: dict[Leaf, Any], reply: Reply) -> dict[Leaf, Any]:
    """The fields without those that a refusal names."""
    names = [each["field"] for each in reply.json.get("errors", ())] if reply.status == 400 else []
    return {
        leaf: value
        for leaf, value in left.items()
        if not any(f"{name}.".startswith(".".join(map(str, (*leaf.steps, "")))) for name in names)
    }


def is_expected(reply: Reply) -> bool:
    """Whether a response is a documented one: a success or a refusal, and no failure but the legacy ones."""
    return reply.status < 500 or "code" in (reply.json or {})


async def test_an_operator_in_place_of_a_string_is_refused(victim: Victim, target: Caller) -> None:
    """The body is validated before any document is read: 400, though the identifiers in the path are unknown.

    All fields have one at the same time; one that the refusal does not name is sent alone. What is saved entry by entry
    answers with the errors of each entry.
    """
    differences = []
    for route, values in together((case for case in body_cases() if case.leaf.is_string), OPERATORS):
        depends_on_item = isinstance(route.body, ChangeByStoredType)
        path = target.own if depends_on_item or route.path in BY_ENTRY else {}
        reply = await target.send(route, path, json=body_with(route, target.own, values))
        for leaf, value in without_named(values, reply).items():
            reply = await target.send(route, path, json=body_with(route, target.own, {leaf: value}))
            expected = reply.status in (200, 400) if depends_on_item else reply.status == 400
            if route.path in BY_ENTRY and reply.status == 200:
                expected = bool(reply.json["results"][0]["errors"])
            if not expected and not (route.access.sandbox_only and reply.status == 403):
                differences.append((str(BodyCase(route, leaf)), value, reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_hostile_text_is_refused_or_stored(victim: Victim, target: Caller) -> None:
    """All fields have one at the same time, then those that a refusal does not name; if it names none, each alone."""
    differences = []
    for route, values in together((case for case in body_cases() if case.leaf.is_text), TEXTS):
        waiting = [values]
        while waiting:
            sent = waiting.pop()
            reply = await target.send(route, target.own, json=body_with(route, target.own, sent))
            if not is_expected(reply) or "X-Injected" in reply.headers or victim.is_shown_in(reply.raw):
                differences.append((route.path, sent, reply.status, reply.raw[:200]))
            others = without_named(sent, reply)
            if others and others != sent:
                waiting.append(others)
            elif others and reply.status >= 400 and len(sent) > 1:
                waiting += [{leaf: value} for leaf, value in sent.items()]
    assert not differences, "\n".join(map(str, differences))


async def test_hostile_values_in_queries_find_nothing_of_others(victim: Victim, target: Caller) -> None:
    differences = []
    for case in query_cases():
        params = request_options(case.route, target.own)["params"]
        for value in sample(case, QUERY_TEXTS):
            reply = await target.send(case.route, target.own, params=params | {case.parameter: value})
            if not is_expected(reply) or "X-Injected" in reply.headers or victim.is_shown_in(reply.raw):
                differences.append((str(case), value[:30], reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_an_operator_in_the_name_of_a_parameter_is_refused(victim: Victim, target: Caller) -> None:
    differences = []
    for case in query_cases():
        for name in sample(case, operators_in_names(case.parameter)):
            params = request_options(case.route, target.own)["params"] | {name: "x"}
            reply = await target.send(case.route, target.own, params=params)
            sandbox = case.route.access.sandbox_only and reply.status == 403
            # A key of metadata may be any text: no record has this one.
            unknown_key = case.parameter == "metadata" and (reply.json == [] or reply.json.get("docs") == [])
            if reply.status != 400 and not sandbox and not unknown_key:
                differences.append((str(case), reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_hostile_identifier_in_a_path_is_refused(victim: Victim, target: Caller) -> None:
    differences = []
    for case in path_cases():
        for value in sample(case, PATH_TEXTS):
            reply = await target.send(case.route, with_one(case.route, target.own, case.parameter, value))
            legacy = case.parameter == "recordId" and reply.status == 500 and reply.json["code"] == LEGACY
            if reply.status not in (400, 404) and not legacy:
                differences.append((str(case), value, reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))

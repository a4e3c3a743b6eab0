"""Operators of queries and hostile texts in every path, query and body of REST: refused, or stored as they are.

Each field of a body has one of them, by its name; the proofs send it all.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from coaching_service.core.fields import ChangeByStoredType
from tests.contract.test_declared import request_options
from tests.hostile.cases import (
    OPERATORS,
    PATH_TEXTS,
    QUERY_TEXTS,
    SAMPLES,
    TEXTS,
    BodyCase,
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


def body_of(case: BodyCase, own: World, value: Any) -> Any:
    """The example of the operation with this value in the field."""
    example = request_options(case.route, own)["json"]
    example = {name: each for name, each in example.items() if name not in ("version", "dryRun")}
    assert case.route.body is not None
    return complete(case.route.body, case.leaf.put_into(example, value), SAMPLES | own)


def sample(case: BodyCase, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """One of the values, by the name of the field, and in the proofs all of them."""
    first = crc32(str(case).encode()) % len(values)
    return values if MORE > 1 else values[first : first + 1]


def is_expected(reply: Reply) -> bool:
    """Whether a response is a documented one: a success or a refusal, and no failure but the legacy ones."""
    return reply.status < 500 or "code" in (reply.json or {})


async def test_an_operator_in_place_of_a_string_is_refused(victim: Victim, stranger: Caller) -> None:
    """The body is validated before any document is read: 400, though the identifiers in the path are unknown.

    What is saved entry by entry answers with the errors of each entry.
    """
    differences = []
    for case in (case for case in body_cases() if case.leaf.is_string):
        for value in sample(case, OPERATORS):
            depends_on_item = isinstance(case.route.body, ChangeByStoredType)
            path = stranger.own if depends_on_item or case.route.path in BY_ENTRY else {}
            reply = await stranger.send(case.route, path, json=body_of(case, stranger.own, value))
            expected = reply.status in (200, 400) if depends_on_item else reply.status == 400
            if case.route.path in BY_ENTRY and reply.status == 200:
                expected = bool(reply.json["results"][0]["errors"])
            if not expected and not (case.route.access.sandbox_only and reply.status == 403):
                differences.append((str(case), value, reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_hostile_text_is_refused_or_stored(victim: Victim, stranger: Caller) -> None:
    differences = []
    for case in (case for case in body_cases() if case.leaf.is_text):
        for value in sample(case, TEXTS):
            reply = await stranger.send(case.route, stranger.own, json=body_of(case, stranger.own, value))
            if not is_expected(reply) or "X-Injected" in reply.headers or victim.is_shown_in(reply.raw):
                differences.append((str(case), value[:30], reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_hostile_values_in_queries_find_nothing_of_others(victim: Victim, stranger: Caller) -> None:
    differences = []
    for case in query_cases():
        params = request_options(case.route, stranger.own)["params"]
        for value in QUERY_TEXTS:
            reply = await stranger.send(case.route, stranger.own, params=params | {case.parameter: value})
            if not is_expected(reply) or "X-Injected" in reply.headers or victim.is_shown_in(reply.raw):
                differences.append((str(case), value[:30], reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_an_operator_in_the_name_of_a_parameter_is_refused(victim: Victim, stranger: Caller) -> None:
    differences = []
    for case in query_cases():
        for name in operators_in_names(case.parameter):
            params = request_options(case.route, stranger.own)["params"] | {name: "x"}
            reply = await stranger.send(case.route, stranger.own, params=params)
            sandbox = case.route.access.sandbox_only and reply.status == 403
            # A key of metadata may be any text: no record has this one.
            unknown_key = case.parameter == "metadata" and (reply.json == [] or reply.json.get("docs") == [])
            if reply.status != 400 and not sandbox and not unknown_key:
                differences.append((str(case), reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))


async def test_a_hostile_identifier_in_a_path_is_refused(victim: Victim, stranger: Caller) -> None:
    differences = []
    for case in path_cases():
        for value in PATH_TEXTS:
            reply = await stranger.send(case.route, with_one(case.route, stranger.own, case.parameter, value))
            legacy = case.parameter == "recordId" and reply.status == 500 and reply.json["code"] == LEGACY
            if reply.status not in (400, 404) and not legacy:
                differences.append((str(case), value, reply.status, reply.raw[:200]))
    assert not differences, "\n".join(map(str, differences))

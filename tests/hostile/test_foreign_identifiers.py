"""Identifiers of another company and of another client, in each path, body and query of REST: as if unknown."""

from __future__ import annotations

from typing import Any

from coaching_service.core.http.routes import Route
from tests.contract.test_declared import identifiers_for, request_options
from tests.hostile.cases import (
    SAMPLES,
    BodyCase,
    ParameterCase,
    complete,
    identifiers_in_bodies,
    owned_identifiers,
    path_cases,
)
from tests.hostile.conftest import Caller, Refusals, Victim
from tests.support.client import UNKNOWN, Reply
from tests.support.declared_world import World

# The documented legacy failure of contract 3.
METRICS_SET_MISSING = 500


def is_legacy(route: Route, parameter: str) -> bool:
    """Whether an unknown identifier is answered with a documented legacy failure."""
    return parameter == "metricsSetId" and route.path.startswith("/coach/customers/{customerId}/metrics-sets")


def without_request(reply: Reply) -> tuple[int, Any]:
    return reply.status, reply.json


def of_route(route: Route, world: World, parameter: str) -> str:
    """The identifier that a world has for a parameter of a route."""
    own = world.get(f"{route.operation_id}/{parameter}")
    return own or identifiers_for(route, world).get(parameter, UNKNOWN)


def with_one(route: Route, own: World, parameter: str, value: str) -> World:
    """The identifiers of `own`, with another one for this parameter of the path."""
    owners = (route.operation_id, route.path_parameters[0][0])
    return own | {parameter: value} | {f"{owner}/{parameter}": value for owner in owners}


async def answers(
    caller: Caller, case: ParameterCase, foreign: str, refusals: Refusals
) -> tuple[tuple[int, Any], tuple[int, Any]]:
    """The answers to a request with an identifier of others, and to one with an unknown identifier in its place."""

    async def send(value: str) -> tuple[int, Any]:
        identifiers = with_one(case.route, caller.own, case.parameter, value)
        return without_request(await caller.send(case.route, identifiers))

    async def ask() -> Any:
        return await send(UNKNOWN)

    theirs = await send(foreign)

    return theirs, await refusals.like(case.parameter, theirs, ask)


async def test_an_identifier_of_another_company_in_a_path_is_unknown(
    victim: Victim, stranger: Caller, refusals: Refusals
) -> None:
    """One parameter at a time is foreign, the others are the caller's own."""
    differences = []
    for case in path_cases():
        foreign = of_route(case.route, victim.world, case.parameter)
        theirs, unknown = await answers(stranger, case, foreign, refusals)
        legacy = METRICS_SET_MISSING if is_legacy(case.route, case.parameter) else 404
        if theirs[0] != legacy or theirs != unknown:
            differences.append((str(case), theirs, unknown))
    assert not differences, "\n".join(map(str, differences))


async def test_an_identifier_of_another_client_in_a_path_is_unknown(
    stranger: Caller, sibling: World, refusals: Refusals
) -> None:
    """A document of another client, program or exercise of the same company, under an owner that it does not have."""
    differences = []
    for case in owned_identifiers():
        foreign = of_route(case.route, sibling, case.parameter)
        theirs, unknown = await answers(stranger, case, foreign, refusals)
        if theirs[0] != 404 or theirs != unknown:
            differences.append((str(case), theirs, unknown))
    assert not differences, "\n".join(map(str, differences))


# Whose identifiers belong to one user of a company, not to the company.
OF_ONE_COACH = {"keyId", "assistantId", "grantId", "proposalId", "subscriptionId"}
OF_THE_COMPANY = {"exerciseId", "metricsSetId", "metricId"}  # in paths of clients


async def test_an_identifier_of_another_user_in_a_path_is_unknown(
    stranger: Caller, sibling: World, colleague: Caller, refusals: Refusals
) -> None:
    """Keys, assistants, proposals and devices of a colleague, and all that is of another client of the company.

    The test before tries the other records of a client.
    """
    differences, kinds = [], set()
    for case in path_cases():
        route, parameter = case.route, case.parameter
        is_of_client = route.access.audience == "customer" and parameter not in OF_THE_COMPANY
        if not is_of_client and parameter not in OF_ONE_COACH:
            continue
        kinds.add(parameter)
        if case in owned_identifiers():
            continue
        caller, foreign = (
            (stranger, of_route(route, sibling, parameter))
            if is_of_client
            else (colleague, of_route(route, stranger.own, parameter))
        )
        assert foreign != UNKNOWN, case
        theirs, unknown = await answers(caller, case, foreign, refusals)
        if theirs[0] != 404 or theirs != unknown:
            differences.append((str(case), theirs, unknown))
    assert not differences, "\n".join(map(str, differences))
    assert kinds >= {*OF_ONE_COACH, "availabilityId", "importId", "messageId", "photoId", "wblockId", "witemId"}


# The names of fields whose identifiers have another name in a path.
KINDS = {
    "_id": "metricId", "assignedTo": "employeeId", "coachId": "employeeId", "customerIds": "customerId",
    "excludeIds": "customerId", "exerciseIds": "exerciseId", "id": "customerId", "ids": "customerId",
    "attachments": "fileId", "metricUnitId": "metricId", "libraryId": "formId",
}  # fmt: skip


def kind_of(case: BodyCase) -> str:
    """The name in a path of what the field names."""
    name = next(step for step in reversed(case.leaf.steps) if isinstance(step, str))
    return KINDS.get(name, name)


# The fields that select the clients of a bulk operation, of which a request has one, or `filter` and `excludeIds`.
SELECTIONS = {"ids", "filter", "excludeIds", "assignedProgramId"}


def body_of(case: BodyCase, own: World, value: Any) -> Any:
    """The example of the operation with this value in the field, complete, and without a version or a dry run."""
    example = request_options(case.route, own)["json"]
    selects = case.leaf.steps[0] in SELECTIONS
    dropped = {"version", "dryRun"} | (SELECTIONS if selects else set())
    example = {name: each for name, each in example.items() if name not in dropped}
    if case.leaf.steps[0] in ("filter", "excludeIds"):
        example["filter"] = {"archived": True}  # no client of the company is
    assert case.route.body is not None
    return complete(case.route.body, case.leaf.put_into(example, value), SAMPLES | own)


# Items of other types than that of the path in `own`, by the field that only they have.
ITEM_OF = {"circuitExercises": "circuitId", "form": "wblockId/formItemId", "answers": "wblockId/formItemId"}


def path_for(case: BodyCase, own: World) -> World:
    """The identifiers of the path, with an item that has the field of the case."""
    item = ITEM_OF.get(str(case.leaf.steps[0]), "wblockId/witemId")
    needs_item = "{witemId}" in case.route.path and "{customerId}" in case.route.path
    return with_one(case.route, own, "witemId", own[item]) if needs_item else own


def anonymized(reply: Reply, identifier: str) -> Any:
    """The response without the identifier that was sent; of a success other than a bulk result only the status."""
    if reply.status < 400 and "failed" not in reply.json:
        return reply.status
    return reply.status, reply.raw.replace(identifier.encode(), b"<sent>")


async def test_an_identifier_of_another_company_in_a_body_is_unknown(
    victim: Victim, stranger: Caller, refusals: Refusals
) -> None:
    """The same refusal as of an unknown identifier; where it is none, nothing of the other company is shown or stored."""
    differences, refused = [], 0

    async def send(case: BodyCase, value: str) -> Reply:
        body = body_of(case, stranger.own, value)
        return await stranger.send(case.route, path_for(case, stranger.own), json=body)

    for case in identifiers_in_bodies():
        foreign = of_route(case.route, victim.world, kind_of(case))
        theirs = await send(case, foreign)
        answer = anonymized(theirs, foreign)

        async def ask(case: BodyCase = case) -> Any:
            return anonymized(await send(case, UNKNOWN), UNKNOWN)

        unknown = await (refusals.like(kind_of(case), answer, ask) if theirs.status == 404 else ask())
        refused += theirs.status == 404
        if answer != unknown or set(victim.is_shown_in(theirs.raw)) - {foreign}:
            differences.append((str(case), theirs.raw, unknown))
    assert not differences, "\n".join(map(str, differences))
    assert refused >= 65, "the others are ignored, part of a bulk result, or refused for another reason"
    assert await victim.references_in(stranger.key) == []

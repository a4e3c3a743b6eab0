"""Hostile requests to the pages for coaches and clients: identifiers of others, operators and texts in each field."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core.ids import ObjectId
from coaching_service.people.sessions import service as sessions
from coaching_service.web.pages import Page
from tests.hostile.cases import FormCase, PageCase, form_cases, pages_with_identifiers
from tests.hostile.conftest import Caller, Refusals, Victim
from tests.hostile.test_foreign_identifiers import OF_ONE_COACH, OF_THE_COMPANY
from tests.support.client import UNKNOWN
from tests.support.declared_world import World
from tests.support.visitor import HtmlPage, Visitor
from tests.web.test_pages import filled

FIELD_TEXT = '{"$gt":""}"><script>alert(1)</script>{{7*7}}\u202e'
SCRIPT = "<script>alert(1)"


@pytest.fixture
async def visitors(server: TestServer, stranger: Caller) -> AsyncIterator[dict[str, tuple[Visitor, str]]]:
    """The owner and a client of the other company, signed in, with the token of their forms, by audience."""
    async with visiting(server, stranger) as signed_in:
        yield signed_in


@asynccontextmanager
async def visiting(server: TestServer, caller: Caller) -> AsyncIterator[dict[str, tuple[Visitor, str]]]:
    """The browsers of the owner and a client of a company."""
    ctx = caller.key.ctx
    coach, client = Visitor(server), Visitor(server)
    coach.keep(coach_session=(await sessions.start_for_coach(ctx, ctx.caller.id)).token)
    customer_id = ObjectId(caller.own["customerId"])
    client.keep(coach_session=(await sessions.start_for_customer(ctx, customer_id, "Test browser")).token)
    csrf = (await coach.get("/app/customers")).form("/app/sign-out").fields[0][1]
    own_csrf = (await client.get("/train")).html.partition('data-csrf="')[2].partition('"')[0]
    yield {"coach": (coach, csrf), "customer": (client, own_csrf)}
    await coach.close()
    await client.close()


async def send(
    visitors: dict[str, tuple[Visitor, str]], page: Page, path: str, values: dict[str, str] | None = None
) -> HtmlPage:
    """Open a page with these values in its query, or send its form with them; a redirect is followed."""
    visitor, csrf = visitors.get(page.access.audience, visitors["coach"])
    if page.method == "GET":
        return await visitor.send("GET", path, params=values or {})
    return await visitor.send("POST", path, data={"csrf": csrf} | (values or {}))


def with_one(page: Page, own: World, parameter: str, value: str) -> str:
    """The path with the identifiers of `own`, and another one for this parameter."""
    path = filled(page, own)
    places = page.path.split("/")
    parts = path.split("/")
    parts[places.index(f"{{{parameter}}}")] = value
    return "/".join(parts)


def at(page: Page, world: World, parameter: str) -> str:
    """The identifier that a world has for a parameter of a page."""
    return filled(page, world).split("/")[page.path.split("/").index(f"{{{parameter}}}")]


async def answers(
    visitors: dict[str, tuple[Visitor, str]], case: PageCase, own: World, foreign: str, refusals: Refusals
) -> tuple[HtmlPage, int]:
    """The page with an identifier of others in its path, and the status with an unknown one in its place."""
    theirs, unknown = [with_one(case.page, own, case.parameter, value) for value in (foreign, UNKNOWN)]
    page = await send(visitors, case.page, theirs)

    async def ask() -> int:
        return (await send(visitors, case.page, unknown)).status

    kind = case.page.method, case.page.access.audience, case.parameter
    return page, await refusals.like(kind, page.status, ask)


async def test_an_identifier_of_another_company_in_the_path_of_a_page_is_unknown(
    victim: Victim, stranger: Caller, visitors: dict[str, tuple[Visitor, str]], refusals: Refusals
) -> None:
    differences = []
    for case in pages_with_identifiers():
        foreign = at(case.page, victim.world, case.parameter)
        theirs, unknown = await answers(visitors, case, stranger.own, foreign, refusals)
        if theirs.status != unknown or unknown not in (400, 404) or shown(victim, theirs, foreign):
            differences.append((str(case), theirs.status, unknown, theirs.text[:150]))
    assert not differences, "\n".join(map(str, differences))


async def test_an_identifier_of_another_user_in_the_path_of_a_page_is_unknown(
    server: TestServer,
    stranger: Caller,
    sibling: World,
    colleague: Caller,
    visitors: dict[str, tuple[Visitor, str]],
    refusals: Refusals,
) -> None:
    """Keys, assistants, proposals and devices of a colleague, and all that is of another client of the company."""
    own, differences = Visitor(server), list[object]()
    coach_id = ObjectId((await colleague.key.get("/me")).ok()["_id"])
    own.keep(coach_session=(await sessions.start_for_coach(stranger.key.ctx, coach_id)).token)
    csrf = (await own.get("/app/customers")).form("/app/sign-out").fields[0][1]
    users = {"coach": (own, csrf), "customer": visitors["customer"]}
    for case in pages_with_identifiers():
        page, parameter = case.page, case.parameter
        is_of_client = page.access.audience == "customer" and parameter not in OF_THE_COMPANY
        if not is_of_client and parameter not in OF_ONE_COACH:
            continue
        foreign = at(page, sibling if is_of_client else stranger.own, parameter)
        theirs, unknown = await answers(users, case, stranger.own, foreign, refusals)
        if theirs.status != unknown or unknown not in (400, 404):
            differences.append((str(case), theirs.status, unknown, theirs.text[:150]))
    await own.close()
    assert not differences, "\n".join(map(str, differences))


def shown(victim: Victim, page: HtmlPage, sent: str = "") -> set[str]:
    """What a page shows of the victim, but for the identifier that was sent."""
    return set(victim.is_shown_in(page.html.encode())) - {sent}


async def test_hostile_texts_in_forms_and_queries_of_pages_are_shown_as_text(
    server: TestServer, victim: Victim, target: Caller
) -> None:
    """All fields of a form have the text at the same time: what is refused is shown again as well."""
    differences, fields_of = [], dict[tuple[str, str], list[FormCase]]()
    for case in form_cases():
        fields_of.setdefault((case.page.method, case.page.path), []).append(case)
    async with visiting(server, target) as visitors:
        for cases in fields_of.values():
            page, texts = cases[0].page, {".".join(map(str, case.leaf.steps)): FIELD_TEXT for case in cases}
            seen = await send(visitors, page, filled(page, target.own), texts)
            if (
                seen.status >= 500
                or (seen.is_html and SCRIPT in seen.html)
                or shown(victim, seen)
                or "49" in seen.text.split()
            ):
                differences.append((page.method, page.path, [*texts], seen.status, seen.text[:200]))
    assert not differences, "\n".join(map(str, differences))

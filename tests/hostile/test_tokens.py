"""What the tokens of sign-ups, invitations, mails, links and assistants can do: only what each is for."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.core.auth import new_token
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.contract.test_declared import fill_path, request_options
from tests.hostile.cases import TOKENS, WITH_CREDENTIAL
from tests.hostile.conftest import Caller, Victim
from tests.people.test_sessions import mailed_token
from tests.support.assistants import authorize_assistant
from tests.support.client import CoachClient
from tests.support.sampled import some

# Where a token is sent in a body, and with what else.
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "/auth/refresh": ("refreshToken", {}),
    "/auth/password/reset": ("token", {"password": PASSWORD}),
    "/auth/first-access": ("token", {"password": PASSWORD, "email": "mallory@example.com"}),
    "/auth/confirm-email": ("token", {}),
}
# The place that each token is for, by hand; it is not sent there.
OWN_PLACE = {
    "first access": "/auth/first-access",
    "invitation": "/auth/password/reset",
    "confirmation": "/auth/confirm-email",
    "refresh": "/auth/refresh",
}


@pytest.fixture
async def tokens(victim: Victim, stranger: Caller, anonymous: CoachClient, settings: Settings) -> dict[str, str]:
    """A token of each kind, unused."""
    unique = new_token()[:12].lower()
    customer = await stranger.key.create_customer("Bea", sendInvitation=False)
    employee = {"name": "Eli", "email": f"eli-{unique}@example.com"}
    (await stranger.session.post("/coach/employees", employee)).ok(201)
    sign_up = {"companyName": "Gym", "name": "Nora", "email": f"nora-{unique}@example.com", "password": PASSWORD}
    signed_up = (await anonymous.post("/auth/register", sign_up)).ok(201)
    assistant = await authorize_assistant(stranger.key.ctx)
    link = (await stranger.key.post(f"/coach/customers/{customer['_id']}/calendar-link")).ok(201)
    return {
        "first access": customer["firstAccessToken"],
        "invitation": await mailed_token(settings, employee["email"]),
        "confirmation": await mailed_token(settings, sign_up["email"]),
        "refresh": signed_up["refreshToken"],
        "assistant": assistant.tokens.access,
        "assistant's refresh": str(assistant.tokens.refresh),
        "calendar": link["url"].rsplit("/", 1)[1].removesuffix(".ics"),
        "device": signed_up["deviceToken"],
        "sign-up": signed_up["accessToken"],
    }


async def test_a_token_for_something_else_is_no_credential(
    tokens: dict[str, str], stranger: Caller, anonymous: CoachClient
) -> None:
    """As an API key, and as a bearer of an operation of each kind of caller, of the others in turn."""
    first_with = {
        (route.access.audience, route.access.session_only): route for route in reversed(WITH_CREDENTIAL)
    }.values()
    for number, kind in enumerate(TOKENS):
        bearer, key = anonymous.with_bearer(tokens[kind]), anonymous.with_key(tokens[kind])
        for route in (*first_with, *WITH_CREDENTIAL[number :: len(TOKENS)]):
            path, options = fill_path(route, stranger.own), request_options(route, stranger.own)
            reply = await bearer.send(route.method, path, **options)
            assert (reply.status, reply.json) == (401, {"statusCode": 401, "message": "Unauthorized"}), (
                kind,
                route.path,
            )
        assert (await key.get("/me")).refused(401) == {"message": "Invalid API key"}


async def test_a_token_is_accepted_only_where_it_belongs(tokens: dict[str, str], anonymous: CoachClient) -> None:
    for kind, token in tokens.items():
        for path, (field, more) in PLACES.items():
            if OWN_PLACE.get(kind) != path:
                reply = await anonymous.post(path, {field: token, **more})
                assert reply.status in (400, 401, 404), (kind, path, reply.status, reply.raw)
        (await anonymous.get(f"/calendar/{token}")).ok(200) if kind == "calendar" else None
    for kind, path in OWN_PLACE.items():  # none of these requests has used them up
        field, more = PLACES[path]
        reply = await anonymous.post(path, {field: tokens[kind], **more})
        assert reply.status == 200, (kind, reply.raw)


async def test_a_company_that_signed_up_sees_nothing_of_others(
    tokens: dict[str, str], victim: Victim, anonymous: CoachClient
) -> None:
    """Operations with the identifiers of another company only: 404, or 403 where it is not for coaches.

    Every one that has several, and some others, to which test_foreign_identifiers.py sends the same.
    """
    owner = anonymous.with_bearer(tokens["sign-up"])
    routes = [
        route
        for route in WITH_CREDENTIAL
        if route.path_parameters and not route.path_fields and route.path != "/auth/logout"
    ]
    several = [route for route in routes if len(route.path_parameters) > 1]
    for route in (*several, *some([route for route in routes if route not in several], 24)):
        reply = await owner.send(route.method, fill_path(route, victim.world), **request_options(route, victim.world))
        assert reply.status == (403 if route.access.audience == "customer" else 404), (route.path, reply.raw)
        assert victim.is_shown_in(reply.raw) == []

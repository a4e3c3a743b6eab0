"""Who may call the operations under /customer, written by hand: a client, and a coach in the client's place."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from tests.conftest import NewCompany
from tests.contract.test_declared import fill_path
from tests.core.test_uploads import form
from tests.support.client import CoachClient, Reply
from tests.support.declared_world import small_picture

BOTH, CLIENT_ONLY = "the client, and an impersonation", "the client only"
POLICY = {
    "GET /customer/me": BOTH,
    "PATCH /customer/me": BOTH,
    "PUT /customer/me/profile-photo": BOTH,
    "PUT /customer/me/password": CLIENT_ONLY,
    "POST /customer/me/erasure-request": CLIENT_ONLY,
    "GET /customer/push-subscriptions": BOTH,
    "POST /customer/push-subscriptions": CLIENT_ONLY,
    "DELETE /customer/push-subscriptions/{subscriptionId}": BOTH,
    "GET /customer/today": BOTH,
    "GET /customer/wblock": BOTH,
    "PUT /customer/wblocks/{wblockId}/log": BOTH,
    "PUT /customer/wblocks/{wblockId}/date": BOTH,
    "POST /customer/wblocks": BOTH,
    "PATCH /customer/wblocks/{wblockId}": BOTH,
    "DELETE /customer/wblocks/{wblockId}": BOTH,
    "PUT /customer/wblocks/{wblockId}/witems/{witemId}/log": BOTH,
    "PUT /customer/wblocks/{wblockId}/witems/{witemId}/sets": BOTH,
    "GET /customer/exercise/{exerciseId}": BOTH,
    "GET /customer/exercise/{exerciseId}/history": BOTH,
    "GET /customer/exercise/{exerciseId}/progress": BOTH,
    "GET /customer/personal-records": BOTH,
    "GET /customer/metrics-sets": BOTH,
    "POST /customer/metrics-sets/{metricsSetId}/entries": BOTH,
    "DELETE /customer/metrics-sets/{metricsSetId}/metrics/{metricId}/history/{date}": BOTH,
    "GET /customer/metrics-sets/{metricsSetId}/metrics/{metricId}/history": BOTH,
    "GET /customer/progress-photos": BOTH,
    "POST /customer/progress-photos": BOTH,
    "DELETE /customer/progress-photos/{photoId}": BOTH,
    "GET /customer/plan-versions": BOTH,
    "GET /customer/form-responses": BOTH,
    "GET /customer/export": BOTH,
    "GET /customer/access": BOTH,
    "GET /customer/availability": BOTH,
    "POST /customer/availability": BOTH,
    "PATCH /customer/availability/{availabilityId}": BOTH,
    "DELETE /customer/availability/{availabilityId}": BOTH,
    "GET /customer/messages": BOTH,
    "POST /customer/messages": CLIENT_ONLY,
    "PATCH /customer/messages/{messageId}": CLIENT_ONLY,
    "DELETE /customer/messages/{messageId}": CLIENT_ONLY,
    "PUT /customer/messages/read": BOTH,
    "POST /customer/messages/attachments": CLIENT_ONLY,
    "GET /customer/wblocks/{wblockId}/witems/{witemId}/media": BOTH,
    "POST /customer/wblocks/{wblockId}/witems/{witemId}/media": CLIENT_ONLY,
    "DELETE /customer/wblocks/{wblockId}/witems/{witemId}/media/{mediaId}": CLIENT_ONLY,
    "POST /customer/media/{mediaId}/comments": CLIENT_ONLY,
    "PATCH /customer/media/{mediaId}/comments/{commentId}": CLIENT_ONLY,
    "DELETE /customer/media/{mediaId}/comments/{commentId}": CLIENT_ONLY,
    "POST /customer/import": BOTH,
    "GET /customer/jobs/{importId}": BOTH,
    "POST /customer/jobs/{importId}/undo": BOTH,
}
OWN_ROUTES = {f"{r.method} {r.path}": r for r in routes_of(features.ROUTES) if r.path.startswith("/customer/")}


def test_every_operation_of_clients_is_in_the_policy() -> None:
    assert OWN_ROUTES.keys() == POLICY.keys()


async def call(caller: CoachClient, name: str) -> Reply:
    """Call an operation with its example, and with identifiers that are unknown."""
    route = OWN_ROUTES[name]
    if route.multipart is None:
        return await caller.send(route.method, fill_path(route, {}), json=route.example)
    data = form(small_picture(), route.multipart.file_field, "small.png", **route.example)
    return await caller.send(route.method, fill_path(route, {}), data=data)


@dataclass
class Callers:
    """Those who are not the client: a key and a session of a coach, and an impersonation."""

    coaches: list[CoachClient]
    impersonation: CoachClient


@pytest.fixture(scope="module")
async def callers(new_company: NewCompany) -> Callers:
    coach = await new_company()
    interactive = await coach.interactive()
    ana = await coach.create_customer("Ana")
    token = (await interactive.post(f"/coach/customers/{ana['_id']}/impersonate")).ok()["accessToken"]
    return Callers([coach, interactive], coach.with_bearer(token))


@pytest.mark.parametrize("name", POLICY)
async def test_a_coach_is_refused_and_an_impersonation_gets_what_the_policy_states(callers: Callers, name: str) -> None:
    for refused in callers.coaches:
        (await call(refused, name)).refused(403, "client's own session")
    reply = await call(callers.impersonation, name)
    assert (reply.status == 403) is (POLICY[name] == CLIENT_ONLY), reply.raw

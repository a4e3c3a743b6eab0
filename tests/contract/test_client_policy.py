"""Who may call the operations under /customer, written by hand: a client, and a coach in the client's place."""

from __future__ import annotations

import pytest

from coaching_service import features
from coaching_service.core.http.routes import routes_of
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
    "GET /customer/today": BOTH,
    "GET /customer/wblock": BOTH,
    "PUT /customer/wblocks/{wblockId}/log": BOTH,
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
    "GET /customer/messages": BOTH,
    "POST /customer/messages": CLIENT_ONLY,
    "PATCH /customer/messages/{messageId}": CLIENT_ONLY,
    "DELETE /customer/messages/{messageId}": CLIENT_ONLY,
    "PUT /customer/messages/read": BOTH,
    "POST /customer/messages/attachments": CLIENT_ONLY,
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
    return await caller.send(route.method, route.path, data=data)


@pytest.mark.parametrize("name", POLICY)
async def test_a_coach_is_refused_and_an_impersonation_gets_what_the_policy_states(
    coach: CoachClient, interactive: CoachClient, name: str
) -> None:
    ana = await coach.create_customer("Ana")
    token = (await interactive.post(f"/coach/customers/{ana['_id']}/impersonate")).ok()["accessToken"]

    for refused in (coach, interactive):
        (await call(refused, name)).refused(403, "client's own session")
    reply = await call(coach.with_bearer(token), name)
    assert (reply.status == 403) is (POLICY[name] == CLIENT_ONLY), reply.raw

"""Who may call what: every declared operation with every kind of credential; what to expect is declared."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coaching_service import features
from coaching_service.core.database.documents import now
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.sessions import service as sessions
from coaching_service.people.team import service as team
from tests.client import UNKNOWN, CoachClient
from tests.conftest import NewCompany
from tests.contract.test_declared import filled

# Signing out comes last: it ends the session the walk is made with.
ROUTES = sorted(
    (route for route in routes_of(features.ROUTES) if route.access.audience != "public"),
    key=lambda route: route.path == "/auth/logout",
)
REFUSED_401 = ("nothing", "bad key", "revoked key", "expired key", "bad bearer beside a good key")
KEYS = ("owner's key", "read-only key", "key without permissions", "another company's key")
SESSIONS = ("owner's session", "session of an employee without permissions", "client's session")


def expected(route: Route, credential: str) -> int | None:
    """The status the declaration asks for; None: not refused."""
    access = route.access
    if credential in REFUSED_401:
        return 401
    is_client = credential == "client's session"
    powerless = credential in ("key without permissions", "session of an employee without permissions")
    refused = (
        (access.session_only and credential in KEYS)
        or (access.audience == "coach" and is_client)
        or (access.audience == "customer" and not is_client)
        or (access.permissions and powerless)
        or (access.owner_only and (powerless or credential == "read-only key"))
        or (route.writes and credential == "read-only key")
    )
    return 403 if refused else None


@pytest.fixture(scope="module")
async def company(new_company: NewCompany) -> CoachClient:
    return await new_company()


@pytest.fixture(scope="module")
async def another(new_company: NewCompany) -> CoachClient:
    return await new_company()


@pytest.fixture(scope="module")
async def client_of_theirs(company: CoachClient) -> str:
    return str((await company.create_customer())["_id"])


@pytest.fixture(scope="module")
async def powerless(company: CoachClient) -> ObjectId:
    hired = await team.hire(company.ctx, "Eli", f"eli-{company.ctx.company_id}@example.com", [], "all", "no hash")
    identifier: ObjectId = hired["_id"]
    return identifier


@pytest.fixture
async def headers(
    company: CoachClient, another: CoachClient, client_of_theirs: str, powerless: ObjectId, credential: str
) -> dict[str, str]:
    """What the holder of the credential sends."""

    async def key(restrictions: dict[str, object]) -> dict[str, str]:
        return {"X-API-Key": (await api_keys.create(company.ctx, "Test", restrictions))["key"]}

    async def session(subject: ObjectId, kind: sessions.Kind) -> dict[str, str]:
        return {"Authorization": "Bearer " + (await sessions.begin(company.ctx, subject, kind))["accessToken"]}

    async def revoked() -> dict[str, str]:
        made = await api_keys.create(company.ctx, "Test")
        await api_keys.revoke(company.ctx, made["_id"])
        return {"X-API-Key": made["key"]}

    match credential:
        case "nothing":
            return {}
        case "bad key":
            return {"X-API-Key": "cs_ak_" + "x" * 43}
        case "bad bearer beside a good key":
            return {"Authorization": "Bearer nonsense", "X-API-Key": str(company.key)}
        case "revoked key":
            return await revoked()
        case "expired key":
            return await key({"expiresAt": now() - timedelta(seconds=1)})
        case "owner's key":
            return {"X-API-Key": str(company.key)}
        case "read-only key":
            return await key({"readOnly": True})
        case "key without permissions":
            return await key({"permissions": []})
        case "another company's key":
            return {"X-API-Key": str(another.key)}
        case "owner's session":
            return await session(company.ctx.caller.id, "coach")
        case "session of an employee without permissions":
            return await session(powerless, "coach")
        case _:
            return await session(ObjectId(client_of_theirs), "customer")


@pytest.mark.parametrize("credential", [*REFUSED_401, *KEYS, *SESSIONS])
async def test_every_operation_lets_in_whom_it_declares(
    nobody: CoachClient, headers: dict[str, str], credential: str
) -> None:
    """Identifiers are unknown and bodies malformed: a refusal comes before either is looked at."""
    wrong = []
    for route in ROUTES:
        path = filled(route, dict.fromkeys((wire for wire, _ in route.path_parameters), UNKNOWN))
        reply = await nobody.send(route.method, path, headers=headers, json={"id": []})
        wanted = expected(route, credential)
        right = reply.status == wanted if wanted else reply.status not in (401, 403)
        if not right:
            wrong.append((route.method, route.path, reply.status, wanted))
        if wanted == 403:
            assert set(reply.json) == {"statusCode", "message", "error"}
            assert reply.json["error"] == "Forbidden"
    assert wrong == []

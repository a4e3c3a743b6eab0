"""Every declared operation is called with every kind of credential."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from coaching_service import features
from coaching_service.core.auth import CUSTOMERS, WEBHOOKS, check_access
from coaching_service.core.auth import coach as coach_access
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Forbidden
from coaching_service.core.http.routes import Route, routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, team
from coaching_service.people.api_keys import NewRestrictions
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.sessions import service as sessions
from tests.contract.test_declared import fill_path
from tests.support.client import UNKNOWN, CoachClient
from tests.support.sampled import MORE, some

# Signing out comes last: it ends the session that the other requests use.
ROUTES = sorted(
    (route for route in routes_of(features.ROUTES) if route.access.audience != "public"),
    key=lambda route: route.path == "/auth/logout",
)
REFUSED_401 = ("no credential", "unknown key", "revoked key", "expired key", "unknown bearer with a valid key")
KEYS = ("owner's key", "read-only key", "key without permissions")
SESSIONS = ("owner's session", "session of an employee without permissions", "client's session")
# Each operation is called with these. The others are looked up in the same way, or may do what another of them may.
EVERYWHERE = {"no credential", "unknown key", *KEYS, "client's session"}
INVALID_KEY = {"message": "Invalid API key"}
UNAUTHORIZED = {"statusCode": 401, "message": "Unauthorized"}


def routes_for(credential: str) -> list[Route]:
    """All routes; or a part of them, and with a session those that only a session may call."""
    if MORE > 1 or credential in EVERYWHERE:
        return ROUTES
    sampled = {route.operation_id for route in some(ROUTES, 80)}
    session_only = credential in SESSIONS
    return [each for each in ROUTES if each.operation_id in sampled or (session_only and each.access.session_only)]


def expected(route: Route, credential: str) -> str | None:
    """The code of the refusal that the declaration requires, `401`, or None."""
    access = route.access
    if credential in REFUSED_401:
        return "401"
    is_client = credential == "client's session"
    has_no_permissions = credential in ("key without permissions", "session of an employee without permissions")
    refusals = {
        "SESSION_REQUIRED": access.session_only and credential in KEYS,
        "CLIENT_SESSION": access.audience == ("coach" if is_client else "customer"),
        "OWNER_ONLY": access.owner_only and (has_no_permissions or credential == "read-only key"),
        "SANDBOX": access.sandbox_only,
        "KEY_READ_ONLY": route.writes and credential == "read-only key",
        "PERMISSION_MISSING": ((access.permissions or access.any_permission) and has_no_permissions)
        or (access.permissions == (WEBHOOKS,) and credential == "read-only key"),  # it may view areas only
    }
    return next((code for code, applies in refusals.items() if applies), None)


@pytest.fixture(scope="module")
async def customer_id(company: CoachClient) -> str:
    return str((await company.create_customer())["_id"])


@pytest.fixture(scope="module")
async def employee_without_permissions(company: CoachClient) -> ObjectId:
    employee = await team.create(company.ctx, "Eli", f"eli-{company.ctx.company_id}@example.com", [], "all", "no hash")
    employee_id: ObjectId = employee["_id"]
    return employee_id


@pytest.fixture
async def headers(
    company: CoachClient,
    customer_id: str,
    employee_without_permissions: ObjectId,
    credential: str,
) -> dict[str, str]:
    """The request headers of the credential."""

    async def key(restrictions: NewRestrictions) -> dict[str, str]:
        return {"X-API-Key": (await api_keys.create(company.ctx, "Test", restrictions))["key"]}

    async def session(subject: ObjectId, kind: SubjectKind) -> dict[str, str]:
        return {"Authorization": "Bearer " + (await sessions.create_session(company.ctx, subject, kind))["accessToken"]}

    async def revoked() -> dict[str, str]:
        api_key = await api_keys.create(company.ctx, "Test")
        await api_keys.delete_api_key(company.ctx, api_key["_id"])
        return {"X-API-Key": api_key["key"]}

    async def expired() -> dict[str, str]:
        api_key = await api_keys.create(company.ctx, "Test", {"expiresAt": now() + timedelta(hours=1)})
        past = {"restrictions.expiresAt": now() - timedelta(seconds=1)}
        await company.ctx.db["apiKeys"].update_one({"_id": api_key["_id"]}, {"$set": past})
        return {"X-API-Key": api_key["key"]}

    match credential:
        case "no credential":
            return {}
        case "unknown key":
            return {"X-API-Key": "cs_ak_" + "x" * 43}
        case "unknown bearer with a valid key":
            return {"Authorization": "Bearer nonsense", "X-API-Key": str(company.key)}
        case "revoked key":
            return await revoked()
        case "expired key":
            return await expired()
        case "owner's key":
            return {"X-API-Key": str(company.key)}
        case "read-only key":
            return await key({"readOnly": True})
        case "key without permissions":
            return await key({"permissions": []})
        case "owner's session":
            return await session(company.ctx.caller.id, "coach")
        case "session of an employee without permissions":
            return await session(employee_without_permissions, "coach")
        case _:
            return await session(ObjectId(customer_id), "customer")


@pytest.mark.parametrize("credential", [*REFUSED_401, *KEYS, *SESSIONS])
async def test_every_operation_accepts_only_the_declared_credentials(
    anonymous: CoachClient, headers: dict[str, str], credential: str
) -> None:
    """Identifiers are malformed or unknown, and bodies malformed: access is checked before either is read."""
    differences = []
    identifier = "malformed" if credential in REFUSED_401 else UNKNOWN
    for route in routes_for(credential):
        path = fill_path(route, dict.fromkeys((wire for wire, _ in route.path_parameters), identifier))
        reply = await anonymous.send(route.method, path, headers=headers, json={"id": []})
        refusal = expected(route, credential)
        outcome = reply.json["code"] if reply.status == 403 else str(reply.status)
        matches = outcome == refusal if refusal else reply.status not in (401, 403)
        if not matches:
            differences.append((route.method, route.path, outcome, refusal))
        if reply.status == 401:
            has_key = credential in ("unknown key", "revoked key", "expired key")
            assert reply.json == (INVALID_KEY if has_key else UNAUTHORIZED), route.path
        if reply.status == 403:
            named = {"permission"} if refusal == "PERMISSION_MISSING" else set()
            assert set(reply.json) == {"statusCode", "message", "error", "code", "docs"} | named
            assert reply.json["error"] == "Forbidden"
            assert reply.json.get("permission") in {None, *route.access.permissions, *route.access.any_permission}
    assert differences == []


async def test_read_only_principal_cannot_write_with_any_permissions(coach: CoachClient) -> None:
    principal = replace(coach.ctx.caller, read_only=True)
    access = coach_access(CUSTOMERS.EDIT)
    assert principal.permissions >= {CUSTOMERS.EDIT}

    check_access(access, principal, writes=False)
    with pytest.raises(Forbidden):
        check_access(access, principal, writes=True)

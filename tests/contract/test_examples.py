"""The responses of all operations, from which the examples of the document are made.

test_every_operation.py compares them with the recorded examples. After an intended change: RECORD_EXAMPLES=1 python -m
pytest tests/contract/test_every_operation.py, then renew openapi.json. It keeps the examples whose fields are as they were;
RECORD_EXAMPLES=all records all of them again.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import coaching_service.documentation
from coaching_service.core.http.routes import Route
from coaching_service.documentation.openapi import response_examples
from tests.conftest import PASSWORD
from tests.contract.recorded import Example
from tests.people.test_second_factor import set_up
from tests.support.authenticator import Authenticator
from tests.support.client import MONDAY, CoachClient
from tests.support.declared_world import World
from tests.support.figures import renew_figures
from tests.support.training import exercise_of, one_of_each, path_of
from tests.support.training import log as log_item

RECORDED = Path(coaching_service.documentation.__file__).with_name("response_examples.json")
# These operations take a token that travels by e-mail only.
_BY_MAIL = {
    "confirmEmail": {"message": "The e-mail address is confirmed"},
    "resetPassword": {"message": "The password has been set", "apiKeys": 1, "deviceToken": "a token of the device"},
}


def compare_with_recorded(responses: dict[str, Any]) -> None:
    """Fail if a response has other fields than its recorded example; or record the responses."""
    recorded = {name: Example().of(response) for name, response in responses.items()} | _BY_MAIL
    kept = json.loads(RECORDED.read_text("utf-8"))
    if mode := os.environ.get("RECORD_EXAMPLES"):
        is_kept = {name for name in recorded if name in kept and _fields(recorded[name]) == _fields(kept[name])}
        kept = recorded if mode == "all" else recorded | {name: kept[name] for name in is_kept}
        RECORDED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
    assert _fields(recorded) == _fields(kept)


def test_identifiers_are_numbered_in_each_example() -> None:
    for name, example in response_examples().items():
        written = re.findall(r"66f0c0ffee([0-9a-f]{14})", json.dumps(example, sort_keys=True))
        assert sorted({int(number, 16) for number in written}) == list(range(1, len({*written}) + 1)), name


async def train(coach: CoachClient, world: World) -> None:
    """A session with an item of every type, the first of them logged, so that the figures are not empty."""
    customer = {"_id": world["customerId"]}
    block = await coach.schedule(customer)
    for item in [exercise_of({"_id": world["exerciseId"]}), *await one_of_each(coach)]:
        (await coach.post(f"{path_of(block)}/witems", item)).ok(201)
    items = (await coach.get(path_of(block))).ok()["items"]
    (await log_item(coach, block, items[0], customerSets=[{"reps": 8, "load": 60}])).ok()


async def special_responses(anonymous: CoachClient, coach: CoachClient) -> dict[str, Any]:
    """The responses of operations whose example cannot be sent, or whose result is empty without preparation."""
    responses = await _sign_in_responses(anonymous, coach) | await _override_responses(coach)
    responses |= await _sandbox_responses(coach)
    await renew_figures(coach.ctx)
    responses["listAttention"] = (await coach.get("/coach/attention")).ok()
    responses["listCompliance"] = (await coach.get("/coach/compliance", **{"from": MONDAY, "to": MONDAY})).ok()
    responses["searchTexts"] = (await coach.get("/coach/search", q="hello")).ok()
    return responses


async def _sign_in_responses(anonymous: CoachClient, coach: CoachClient) -> dict[str, Any]:
    """The responses of the operations that need no credential."""
    email = f"ana{coach.ctx.company_id}@example.com"
    company = {"companyName": "Riverside Strength", "name": "Ana", "email": email, "password": PASSWORD}
    client = await coach.create_customer("Cara", email=f"cara{coach.ctx.company_id}@example.com", sendInvitation=False)
    access = {"token": client["firstAccessToken"], "password": PASSWORD}
    signed_up = (await anonymous.post("/auth/register", company)).ok(201)
    first_access = (await anonymous.post("/auth/first-access", access)).ok()
    password, change = "/customer/me/password", {"currentPassword": PASSWORD, "password": "another long password"}
    refresh = {"refreshToken": signed_up["refreshToken"]}
    client_session = anonymous.with_bearer(first_access["accessToken"])
    _, recovery_codes = await set_up(client_session)
    sign_in = {"email": f"cara{coach.ctx.company_id}@example.com", "password": PASSWORD}
    challenge = (await anonymous.post("/auth/login", sign_in)).refused(401)["challenge"]
    code = {"challenge": challenge, "recoveryCode": recovery_codes[0]}
    options = (await client_session.post("/auth/passkeys/options", {})).ok()
    new_passkey = {"name": "Phone", "credential": Authenticator().create(options["publicKey"])}
    return {
        "confirmSecondFactor": {"recoveryCodes": recovery_codes},
        "createSignInOptions": (await anonymous.post("/auth/second-factor/options", {})).ok(),
        "createPasskey": (await client_session.post("/auth/passkeys", new_passkey)).ok(201),
        "confirmSignIn": (await anonymous.post("/auth/second-factor", code)).ok(),
        "signUp": signed_up,
        "signIn": (await anonymous.post("/auth/login", {"email": email, "password": PASSWORD})).ok(),
        "refreshSession": (await anonymous.post("/auth/refresh", refresh)).ok(),
        "requestPasswordReset": (await anonymous.post("/auth/password/forgot", {"email": email})).ok(),
        "useFirstAccess": first_access,
        "setOwnPassword": (await anonymous.with_bearer(first_access["accessToken"]).put(password, change)).ok(),
        "archiveCustomer": (await coach.put("/coach/customers/archive", {"id": client["_id"]})).ok(),
        "unarchiveCustomer": (await coach.put("/coach/customers/unarchive", {"id": client["_id"]})).ok(),
        "createPersonalRecord": await _first_record(coach, client["_id"]),
    }


async def _override_responses(coach: CoachClient) -> dict[str, Any]:
    """The responses of the operations that are for shared exercises only."""
    page = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="back squat", type="public")).ok()
    path = f"/exercises/{page['docs'][0]['_id']}/override"
    override = {"videoLink": "https://video.example.com/squat", "aliases": ["Box squat Tuesday"]}
    return {
        "replaceExerciseOverride": (await coach.put(path, override)).ok(),
        "deleteExerciseOverride": (await coach.delete(path)).ok(),
    }


async def _sandbox_responses(coach: CoachClient) -> dict[str, Any]:
    """The responses of a new sandbox, and of the operation that needs its key."""
    created = (await (await coach.interactive()).post("/coach/sandbox")).ok(201)
    sandbox = coach.with_key(created["apiKey"])
    await sandbox.create_customer("Ana", email="ana@example.com")
    return {"createSandbox": created, "listSandboxMail": (await sandbox.get("/coach/sandbox/mail")).ok()}


async def _first_record(coach: CoachClient, customer_id: str) -> Any:
    exercise = await coach.create_exercise("Deadlift")
    record = {"exerciseId": exercise["_id"], "type": "heaviest_load", "value": 140, "date": MONDAY}
    return (await coach.post(f"/coach/customers/{customer_id}/personal-records", record)).ok(201)


def as_dry_run(route: Route) -> Route:
    """The route with an example that asks for a dry run."""
    return replace(route, example={**route.example, "dryRun": "true" if route.multipart else True})


def unconditional(route: Route) -> Route:
    """The route with an example that depends on no stored version, and on no e-mail address of another test."""
    if not isinstance(route.example, dict):
        return route
    example = {name: value for name, value in route.example.items() if name != "version"}
    if "email" in example:
        example["email"] = f"eli{secrets.randbelow(10**12)}@example.com"
    return replace(route, example=example)


def in_order(routes: list[Route]) -> list[Route]:
    """Reads first, while everything is as it was made; changes before upserts; deleting many clients last."""
    called = [route for route in routes if route.access.audience != "public" and route.method != "DELETE"]
    return sorted(called, key=lambda route: (route.method != "GET", "bulk" in route.path, route.upserts))


def _fields(value: Any, path: str = "") -> set[str]:
    """The paths of all fields of a value; the entries of a list have one path."""
    if isinstance(value, list):
        return {field for entry in value for field in _fields(entry, f"{path}[]")}
    if isinstance(value, dict):
        return {
            field for name, entry in value.items() for field in {f"{path}.{name}", *_fields(entry, f"{path}.{name}")}
        }
    return set()

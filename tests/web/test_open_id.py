"""Signing in at an OpenID provider, which runs on loopback: linked once, created, and every false answer refused."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp.test_utils import TestServer, unused_port
from joserfc.jwk import OctKey
from pydantic import ValidationError
from yarl import URL

from coaching_service import runtime
from coaching_service.app import create_app
from coaching_service.core import open_id
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.tracing import NO_TRACER
from coaching_service.people import team
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_second_factor import address, code_of, employee_of, set_up
from tests.support.client import CoachClient
from tests.support.open_id_provider import CLIENT_ID, CLIENT_SECRET, Provider, new_key, running_provider
from tests.support.visitor import HtmlPage, Visitor

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")
START, CALLBACK = "/auth/oidc/start", "/auth/oidc/callback"
REFUSED = "Acme did not sign you in here."


class Site:
    """The service with a provider, and browsers that visit it."""

    def __init__(self, server: TestServer, provider: Provider, services: Services) -> None:
        self.server, self.provider = server, provider
        assert services.open_id is not None
        self.open_id = services.open_id
        self.visitors: list[Visitor] = []

    def visitor(self) -> Visitor:
        """A browser."""
        self.visitors.append(Visitor(self.server))
        return self.visitors[-1]

    async def answer(self, visitor: Visitor, path: str = START) -> URL:
        """Start a sign-in, and return the address to which the provider sends the browser back."""
        started = await visitor.get(path, follow=False)
        assert started.status == 303, started.text
        sent_back = await visitor.get(URL(started.headers["Location"], encoded=True), follow=False)
        return URL(sent_back.headers["Location"], encoded=True)

    async def sign_in(self, visitor: Visitor, path: str = START) -> HtmlPage:
        """Sign in at the provider; returns the page at the end."""
        return await visitor.get(await self.answer(visitor, path))


@pytest.fixture
async def site(settings: Settings, services: Services, coach: CoachClient) -> AsyncIterator[Site]:
    port = unused_port()
    base = f"http://127.0.0.1:{port}"
    async with running_provider(f"{base}{CALLBACK}") as provider:
        chosen = {
            "base_url": base,
            "oidc_issuer": provider.issuer,
            "oidc_client_id": CLIENT_ID,
            "oidc_client_secret": CLIENT_SECRET,
            "oidc_name": "Acme",
        }
        own_settings = settings.model_copy(update=chosen)
        open_provider = runtime.open_provider(own_settings, NO_TRACER)
        assert open_provider is not None
        own_services = replace(services, base_url=base, open_id=open_provider)
        server = TestServer(create_app(own_settings, own_services), host="127.0.0.1", port=port)
        await server.start_server()
        provider.user = {"sub": "u-1", "email": address(coach), "email_verified": True, "name": "Olga"}
        opened = Site(server, provider, own_services)
        yield opened
        for visitor in opened.visitors:
            await visitor.close()
        await server.close()
        await open_provider.outbound.close()


async def link(site: Site, coach: CoachClient) -> None:
    """Link the provider's user to the owner."""
    visitor = site.visitor()
    asked = await site.sign_in(visitor)
    (await visitor.submit(asked, "/app/sign-in", email=address(coach), password=PASSWORD)).ok().says("Connected.")


async def require_refused(site: Site, visitor: Visitor, page: HtmlPage, text: str = REFUSED) -> None:
    """The page says so, and the browser has no session."""
    page.ok().says(text)
    assert page.path.startswith("/app/sign-in")
    assert "coach_session" not in visitor.cookies()
    assert (await visitor.get("/app/settings/security")).path.startswith("/app/sign-in")


async def test_an_account_is_linked_once_with_the_password(site: Site, coach: CoachClient) -> None:
    """Then its subject signs in, without the second factor, even with another verified e-mail address."""
    session = await coach.interactive()
    secret, _ = await set_up(session)
    visitor = site.visitor()
    page = await visitor.get("/app/sign-in?next=/app/settings/security")
    [start] = [each for each in page.ok().says("Continue with Acme").links if each.startswith(START)]
    asked = await site.sign_in(visitor, start)
    await require_refused(site, visitor, asked, "Sign in once with your password to connect Acme.")
    asked = await site.sign_in(visitor, start)
    wrong = await visitor.submit(asked, "/app/sign-in", email=address(coach), password="x")
    code = await visitor.submit(wrong.ok(401), "/app/sign-in", email=address(coach), password=PASSWORD)
    done = await visitor.submit(code, "/app/sign-in/second-factor", code=code_of(secret))
    done.ok().says("Connected. Next time Acme alone signs you in.", "Disconnect")
    assert done.path == "/app/settings/security"
    (stored,) = await coach.ctx.db["providerAccounts"].find({"companyId": coach.ctx.company_id}).to_list()
    assert (stored["subjectId"], stored["issuer"], stored["subject"]) == (
        coach.ctx.caller.id,
        site.provider.issuer,
        "u-1",
    )
    again = site.visitor()
    site.provider.user["email"] = "renamed@example.com"
    assert (await site.sign_in(again, f"{START}?next=/app/settings/security")).ok().path == "/app/settings/security"
    (await session.patch("/coach/account", {"requireSecondFactor": True})).ok()
    (await again.get("/app/customers")).ok().says("Clients")

    unlinked = await again.submit(await again.get("/app/settings/security"), "/app/settings/security/disconnect")
    unlinked.ok().says("Disconnected.")
    site.provider.user["email"] = address(coach)
    third = site.visitor()
    await require_refused(site, third, await site.sign_in(third), "Sign in once with your password")


async def test_another_subject_is_not_the_same_user(site: Site, coach: CoachClient) -> None:
    """An address that the provider has given to another account needs the password again."""
    await link(site, coach)
    visitor = site.visitor()
    site.provider.user["sub"] = "u-2"
    await require_refused(site, visitor, await site.sign_in(visitor), "Sign in once with your password")
    stranger = await employee_of(coach, coach)
    asked = await site.sign_in(visitor)
    page = await visitor.submit(asked, "/app/sign-in", email=stranger[1], password=PASSWORD)
    page.ok()
    assert await coach.ctx.db["providerAccounts"].count_documents({"subject": "u-2"}) == 0, "of another address"


ATTACKS: dict[str, dict[str, Any]] = {
    "issuer": {"claims": {"iss": "https://evil.example"}},
    "audience": {"claims": {"aud": "another"}},
    "more audiences": {"claims": {"aud": [CLIENT_ID, "another"]}},
    "another party": {"claims": {"aud": [CLIENT_ID], "azp": "another"}},
    "nonce": {"claims": {"nonce": "another"}},
    "no nonce": {"claims": {"nonce": None}},
    "expired": {"claims": {"exp": int(time.time()) - 3600, "iat": int(time.time()) - 4000}},
    "no expiry": {"claims": {"exp": None}},
    "in the future": {"claims": {"iat": int(time.time()) + 86_400}},
    "no subject": {"claims": {"sub": None}},
    "unverified": {"claims": {"email_verified": False}},
    "verified as a text": {"claims": {"email_verified": "true"}},
    "nothing of verified": {"claims": {"email_verified": None}},
    "no address": {"claims": {"email": None}},
    "mix-up": {"answer": {"iss": "https://evil.example"}},
    "code": {"answer": {"code": "made-up"}},
    "refusal": {"answer": {"error": "access_denied", "code": ""}},
    "no algorithm": {"header": {"alg": "none", "kid": "first"}},
    "secret as the key": {"header": {"alg": "HS256", "kid": "first"}, "signing_key": OctKey.import_key(CLIENT_SECRET)},
    "unknown key": {"signing_key": new_key("unknown")},
    "false key": {"signing_key": new_key("first")},
}


async def test_false_answers_are_refused(site: Site, coach: CoachClient) -> None:
    """Each in a browser of its own, with all else as the provider answers."""
    await link(site, coach)
    answers = dict(vars(site.provider))
    for attack, changed in ATTACKS.items():
        for name, value in (answers | changed).items():
            setattr(site.provider, name, value)
        await coach.ctx.db["rateLimits"].delete_many({})  # failed sign-ins are counted
        visitor = site.visitor()
        page = await site.sign_in(visitor)
        assert REFUSED in page.ok().text, attack
        await require_refused(site, visitor, page)
    for name, value in answers.items():
        setattr(site.provider, name, value)
    assert (await site.sign_in(site.visitor())).ok().path == "/app/attention", "of a true answer"


async def test_answers_belong_to_one_browser_and_are_used_once(site: Site, coach: CoachClient) -> None:
    await link(site, coach)
    victim, thief = site.visitor(), site.visitor()
    late = "That took too long, or was started in another window."
    answer = await site.answer(victim)
    await require_refused(site, thief, await thief.get(answer), late)
    await site.answer(thief)
    await require_refused(site, thief, await thief.get(answer), late)
    state = answer.query["state"]
    changed = answer.update_query(state=("B" if state[0] == "A" else "A") + state[1:])
    await require_refused(site, victim, await victim.get(changed), late)
    answer = await site.answer(victim)
    cookie = victim.cookies()["coach_provider"]
    assert (await victim.get(answer)).ok().path == "/app/attention"
    replaying = site.visitor()
    replaying.keep(coach_provider=cookie)
    await require_refused(site, replaying, await replaying.get(answer), late)

    verifier = site.visitor()
    first = await site.answer(verifier)
    second = await site.answer(verifier)
    mixed = second.update_query(code=first.query["code"])
    await require_refused(site, verifier, await verifier.get(mixed))  # the verifier of another attempt


async def test_keys_are_rotated_and_metadata_kept(
    site: Site, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await link(site, coach)
    assert site.provider.requests == ["metadata", "token", "keys"]
    site.provider.published = [new_key("second"), site.provider.published[0]]
    visitor = site.visitor()
    await require_refused(site, visitor, await site.sign_in(visitor))  # the keys were read less than 30 s ago
    assert site.provider.requests == ["metadata", "token", "keys", "token"]
    monkeypatch.setattr(open_id, "KEYS_SECONDS", 0)
    assert (await site.sign_in(visitor)).ok().path == "/app/attention"
    site.provider.published = site.provider.published[1:]
    assert (await site.sign_in(site.visitor())).ok().path == "/app/attention"
    assert site.provider.requests.count("metadata") == 1
    assert site.provider.requests.count("keys") == 2


async def test_a_provider_that_does_not_answer(site: Site, coach: CoachClient) -> None:
    visitor = site.visitor()
    site.provider.metadata = {"issuer": "https://evil.example"}
    for _ in range(2):
        page = await visitor.get(START)
        await require_refused(site, visitor, page, "Acme cannot be reached.")
    assert site.provider.requests == ["metadata"], "it is not asked again at once"


async def test_what_the_id_token_has_not_is_read_from_the_user(site: Site, coach: CoachClient) -> None:
    await link(site, coach)
    site.open_id._metadata["userinfo_endpoint"] = f"{site.provider.issuer}/user"
    site.provider.claims = {"email": None, "email_verified": None}
    user = {"sub": "u-1", "email": address(coach), "email_verified": True}
    site.provider.metadata = {"user": user}
    assert (await site.sign_in(site.visitor())).ok().path == "/app/attention"
    for wrong in ({"sub": "u-2"}, {"email_verified": False}):
        site.provider.metadata = {"user": {**user, **wrong}}
        visitor = site.visitor()
        await require_refused(site, visitor, await site.sign_in(visitor))


async def test_new_users_are_employees_only_of_the_company_of_the_settings(
    site: Site, coach: CoachClient, other_company: CoachClient
) -> None:
    email = f"new@{coach.ctx.company_id}.test"
    site.provider.user = {"sub": "n-1", "email": email, "email_verified": True, "name": "Nora"}
    visitor = site.visitor()
    await require_refused(site, visitor, await site.sign_in(visitor), "There is no account here for you.")
    registered = site.open_id.registration
    site.open_id.registration = replace(registered, creates_in=str(coach.ctx.company_id))
    (await site.sign_in(visitor)).ok()
    employees = await team.list_employees(coach.ctx)
    (nora,) = [each for each in employees if each["email"] == email]
    assert (nora["name"], nora["permissions"], nora["customersScope"]) == ("Nora", ["customers.view"], "assigned")
    (await visitor.get("/app/customers")).ok().says("Clients")
    await team.delete_employee(coach.ctx, nora["_id"])
    assert await coach.ctx.db["providerAccounts"].count_documents({"companyId": coach.ctx.company_id}) == 0

    site.provider.user = {"sub": "n-2", "email": address(other_company), "email_verified": True}
    await require_refused(site, visitor, await site.sign_in(visitor), "Sign in once with your password")
    site.open_id.registration = replace(registered, creates_in=str(ObjectId()))
    site.provider.user["email"] = "nobody@example.com"
    await require_refused(site, visitor, await site.sign_in(visitor), "There is no account here for you.")


async def test_another_address_ends_the_link(site: Site, coach: CoachClient) -> None:
    employee_id, email = await employee_of(coach, coach)
    site.provider.user = {"sub": "e-1", "email": email, "email_verified": True}
    visitor = site.visitor()
    asked = await site.sign_in(visitor)
    (await visitor.submit(asked, "/app/sign-in", email=email, password=PASSWORD)).ok().says("Connected.")
    await team.update_employee(coach.ctx, ObjectId(employee_id), {"email": f"other@{coach.ctx.company_id}.test"})
    again = site.visitor()
    await require_refused(site, again, await site.sign_in(again), "There is no account here for you.")


async def test_it_is_off_without_a_provider(visitor: Visitor) -> None:
    for path in (START, CALLBACK):
        (await visitor.get(path)).ok(404)
    assert "Continue with" not in (await visitor.get("/app/sign-in")).text


@pytest.mark.parametrize(
    "changed",
    [
        {"oidc_issuer": "http://provider.example"},
        {"oidc_issuer": "ftp://127.0.0.1"},
        {"oidc_issuer": "https://provider.example?x=1"},
        {"oidc_client_secret": None},
        {"oidc_issuer": None},
        {"oidc_create": "a company"},
    ],
    ids=str,
)
def test_settings_of_the_provider(changed: dict[str, Any]) -> None:
    right: dict[str, Any] = {
        "oidc_issuer": "https://provider.example/",
        "oidc_client_id": "id",
        "oidc_client_secret": "secret",
    }
    assert Settings(**right).oidc_issuer == "https://provider.example/", "a slash at its end is part of it"
    with pytest.raises(ValidationError):
        Settings(**{**right, **changed})

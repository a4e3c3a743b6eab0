"""Passkeys in Chromium with a virtual authenticator: added, used with and without the password, of this origin only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from aiohttp.test_utils import TestServer, unused_port
from playwright.async_api import Browser, Page

from coaching_service.app import create_app
from coaching_service.core.database.context import Services
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.web.browser.conftest import picture, serious, watch

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")
_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@asynccontextmanager
async def running(settings: Settings, services: Services, port: int, base_port: int) -> AsyncIterator[str]:
    """Serve the application on a port of localhost; its base address has the other port."""
    base = f"http://localhost:{base_port}"
    app = create_app(settings.model_copy(update={"base_url": base}), replace(services, base_url=base))
    server = TestServer(app, host="127.0.0.1", port=port)
    await server.start_server()
    yield f"http://localhost:{port}"
    await server.close()


@asynccontextmanager
async def device(chromium: Browser, base: str, complaints: list[str], width: int = 1440) -> AsyncIterator[Page]:
    """A browser with an authenticator."""
    context = await chromium.new_context(base_url=base, viewport={"width": width, "height": 844})
    watch(context, base, complaints)
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
    yield page
    await context.close()


async def type_password(page: Page, email: str) -> None:
    """Send the password on the sign-in page."""
    await page.get_by_label("Email").fill(email)
    await page.get_by_label("Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in", exact=True).click()


async def add_passkey(page: Page, name: str) -> None:
    """Add a passkey on the page of the settings."""
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Add a passkey").click()
    await page.get_by_text(f"{name} was added. You can sign in with it.").wait_for()


async def sign_out(page: Page) -> None:
    """Sign out with the menu of the account."""
    await page.locator(".me > summary").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/app/sign-in*")


async def test_a_coach_signs_in_with_a_passkey_of_this_origin_only(
    chromium: Browser, settings: Settings, services: Services, coach: CoachClient, complaints: list[str]
) -> None:
    port, other_port = unused_port(), unused_port()
    email = str(coach.ctx.caller.email)
    async with (
        running(settings, services, port, port) as base,
        running(settings, services, other_port, port) as imitation,
        device(chromium, base, complaints) as page,
    ):
        await page.goto("/app/sign-in?next=/app/settings/security")
        await picture(page, "passkeys-1440", "sign-in")
        await type_password(page, email)
        await page.wait_for_url("**/app/settings/security")
        await add_passkey(page, "Laptop")
        await picture(page, "passkeys-1440", "settings")
        await page.get_by_label("Name").fill("Again")
        await page.get_by_role("button", name="Add a passkey").click()
        await page.get_by_text("This device has a passkey for you already.").wait_for()

        await sign_out(page)
        await page.get_by_role("button", name="Sign in with a passkey").click()
        await page.wait_for_url("**/app/attention")
        await sign_out(page)
        await page.goto("/app/sign-in?next=/app/settings/security")
        await type_password(page, email)
        await page.get_by_text("Confirm it is you").wait_for()
        assert await page.get_by_label("Code").count() == 0, "there is no application"
        assert await serious(page) == []
        await picture(page, "passkeys-1440", "confirm")
        await page.get_by_role("button", name="Use a passkey").click()
        await page.wait_for_url("**/app/settings/security")
        assert "Last used" in await page.locator(".notification-devices").inner_text()
        assert complaints == []

        await sign_out(page)
        await page.goto(f"{imitation}/app/sign-in")
        await page.get_by_role("button", name="Sign in with a passkey").click()
        await page.get_by_text("This passkey is not known here. It may have been removed.").wait_for()
        assert page.url.startswith(imitation)
        names = [each["name"] for each in await page.context.cookies()]
        assert "coach_session" not in names
        assert any("/app/sign-in/second-factor" in each and each.startswith("401") for each in complaints)
        complaints.clear()

        await page.goto(f"{base}/app/sign-in?next=/app/settings/security")
        await page.get_by_role("button", name="Sign in with a passkey").click()
        await page.wait_for_url(f"{base}/app/settings/security")
        await page.get_by_role("button", name="Remove Laptop").click()
        await page.get_by_text("The passkey was removed.").wait_for()


async def test_a_client_adds_a_passkey_on_a_phone(
    chromium: Browser, settings: Settings, services: Services, coach: CoachClient, complaints: list[str]
) -> None:
    email = f"ana@{coach.ctx.company_id}.test"
    ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
    (await (await coach.interactive()).put(f"/coach/customers/{ana['_id']}/password", {"password": PASSWORD})).ok()
    port = unused_port()
    async with (
        running(settings, services, port, port) as base,
        device(chromium, base, complaints, width=390) as page,
    ):
        await page.goto("/app/sign-in?next=/train/settings/security")
        await picture(page, "passkeys-390", "sign-in")
        await type_password(page, email)
        await page.wait_for_url("**/train/settings/security")
        await add_passkey(page, "Phone")
        await picture(page, "passkeys-390", "settings")
        await page.context.clear_cookies()
        await page.goto("/app/sign-in?next=/train/settings/security")
        await type_password(page, email)
        await page.get_by_text("Confirm it is you").wait_for()
        await picture(page, "passkeys-390", "confirm")
        await page.context.clear_cookies()
        await page.goto("/app/sign-in?next=/train")
        await page.get_by_role("button", name="Sign in with a passkey").click()
        await page.wait_for_url("**/train")


async def test_no_passkeys_without_scripts_or_a_name(
    chromium: Browser, public_server: TestServer, complaints: list[str]
) -> None:
    context = await chromium.new_context(base_url=str(public_server.make_url("/")))
    page = await context.new_page()
    await page.goto("/app/sign-in")
    assert await page.get_by_text("Sign in with a passkey").count() == 0
    await context.close()

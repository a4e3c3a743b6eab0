"""Every page in light and dark mode and on a phone: no errors, accessible, no horizontal overflow."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Page

from coaching_service.web import views
from tests.conftest import NewCompany
from tests.support.client import CoachClient
from tests.support.declared_world import World
from tests.web.browser.conftest import OpenPage, picture, serious, sign_in
from tests.web.browser.sample_company import populate
from tests.web.test_pages import filled

PAGES = [page for page in views.list_pages() if page.method == "GET" and page.path.startswith("/app/")]
OUTSIDE = [page for page in PAGES if page.access.audience == "public"]
INSIDE = [page for page in PAGES if page.access.audience != "public" and page.template]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "small": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="session")
async def studio(new_company: NewCompany) -> tuple[CoachClient, World]:
    coach = await new_company()
    return coach, await populate(coach)


def needed(path: str) -> str:
    """The path of a page with the query it needs to show data."""
    if path.endswith(("/reset-password", "/first-access")):
        return path + "?token=from-a-mail"
    return path


async def check_page(page: Page, look: str, path: str) -> list[str]:
    """Open a page, save a screenshot, and return the problems found."""
    response = await page.goto(needed(path))
    assert response is not None
    assert response.status == 200, path
    await picture(page, look, re.sub(r"[0-9a-f]{24}", "id", path.partition("?")[0].strip("/")).replace("/", "-"))
    wrong = [f"{path} is wider than the screen"] if await page.evaluate(_WIDER) else []
    return wrong + await serious(page)


@pytest.mark.parametrize("look", LOOKS)
async def test_public_pages(open_page: OpenPage, look: str) -> None:
    page = await open_page(**LOOKS[look])
    wrong = [each for public_page in OUTSIDE for each in await check_page(page, look, public_page.path)]
    assert wrong == []


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("look", LOOKS)
async def test_pages_of_a_signed_in_coach(
    open_page: OpenPage, studio: tuple[CoachClient, World], look: str, half: int
) -> None:
    coach, world = studio
    page = await open_page(**LOOKS[look])
    await sign_in(page, coach)
    wrong = []
    for inside_page in INSIDE[half::2]:
        path = filled(inside_page, world)
        if path.endswith("/bulk"):
            path += f"?ids={world['customerId']}&action=delete"
        wrong += await check_page(page, look, path)
    assert wrong == []

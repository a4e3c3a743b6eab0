"""Every page in light and dark mode and on a phone: no errors, accessible, no horizontal overflow."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, Literal

import pytest
from aiohttp.test_utils import TestServer
from playwright.async_api import Page, ViewportSize

from coaching_service.web import views
from tests.support.client import CoachClient
from tests.support.declared_world import World
from tests.web.browser.conftest import OUTPUT, OpenPage, picture, serious, sign_in
from tests.web.browser.phone import sign_client_in
from tests.web.test_pages import filled

PAGES = [page for page in views.list_pages() if page.method == "GET" and page.path.startswith(("/app/", "/train"))]
OUTSIDE = [page for page in PAGES if page.access.audience == "public" and page.template]
INSIDE = [page for page in PAGES if page.access.audience not in ("public", "customer") and page.template]
OF_CLIENTS = [page for page in PAGES if page.access.audience == "customer" and page.template]
SCREENS: dict[str, dict[str, Any]] = {
    "large": {"color_scheme": "light", "reduced_motion": "reduce", "viewport": {"width": 1440, "height": 900}},
    "small": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}
_CUT = """() => [...document.querySelectorAll(".train-nav a, .days-strip a, .days-month a")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.getBoundingClientRect().right > innerWidth)
  .map((each) => each.textContent.trim())"""
# The texts of the primary buttons that are visible, except those that repeat in rows and the answer in a dialog.
_PRIMARY = """() => {
  const probe = document.body.appendChild(document.createElement("button"));
  const color = getComputedStyle(probe).backgroundColor;
  probe.remove();
  return [...document.querySelectorAll("main button, main .button")]
    .filter((each) => each.checkVisibility() && !each.closest("li, tr, dialog") && !each.matches("[aria-current]"))
    .filter((each) => getComputedStyle(each).backgroundColor === color)
    .map((each) => each.textContent.trim());
}"""
# The share of the page's width by which more is empty on the right of all content than on its left.
_EMPTY = """() => {
  const main = document.querySelector("main"), style = getComputedStyle(main), box = main.getBoundingClientRect();
  const width = box.width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const boxes = [...main.querySelectorAll(".card, .empty, table, ol, ul, figure")]
    .filter((each) => each.checkVisibility()).map((each) => each.getBoundingClientRect());
  if (!boxes.length) return 0;
  const right = box.right - Math.max(...boxes.map((each) => each.right));
  return (right - Math.min(...boxes.map((each) => each.left)) + box.left) / width;
}"""
_WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def needed(path: str) -> str:
    """The path of a page with the query it needs to show data."""
    if path.endswith(("/reset-password", "/first-access")):
        return path + "?token=from-a-mail"
    return path


def file_name(path: str) -> str:
    """The name of the screenshot of a page."""
    return re.sub(r"[0-9a-f]{24}|{\w+}", "id", path.partition("?")[0].strip("/")).replace("/", "-")


async def check_page(page: Page, screen: str, path: str) -> list[str]:
    """Open a page, save screenshots, and return the problems found: on a large screen in both themes."""
    response = await page.goto(needed(path))
    assert response is not None
    assert response.status == 200, path
    if screen == "small":
        await picture(page, "small", file_name(path))
        return await _too_wide(page, path) + await serious(page)
    await picture(page, "light", file_name(path))
    wrong = await _too_wide(page, path) + await serious(page)
    primary = await page.evaluate(_PRIMARY)
    wrong += [f"{path} has several primary buttons: {primary}"] if len(primary) > 1 else []
    wrong += [f"a third of {path} is empty"] if await page.evaluate(_EMPTY) > 1 / 3 else []
    await page.emulate_media(color_scheme="dark")
    await picture(page, "dark", file_name(path))
    wrong += await serious(page)
    await page.emulate_media(color_scheme="light")
    return wrong


async def _too_wide(page: Page, path: str) -> list[str]:
    return [f"{path} is wider than the screen"] if await page.evaluate(_WIDER) else []


@pytest.mark.parametrize("screen", SCREENS)
async def test_public_pages(open_page: OpenPage, screen: str) -> None:
    page = await open_page(**SCREENS[screen])
    wrong = [each for public_page in OUTSIDE for each in await check_page(page, screen, public_page.path)]
    assert wrong == [], "\n".join(wrong)


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("screen", SCREENS)
async def test_pages_of_a_signed_in_coach(
    open_page: OpenPage, studio: tuple[CoachClient, World], screen: str, half: int
) -> None:
    coach, world = studio
    page = await open_page(**SCREENS[screen])
    await sign_in(page, coach)
    wrong = []
    for inside_page in INSIDE[half::2]:
        path = filled(inside_page, world)
        if path.endswith(("/bulk", "/bulk/schedules")):
            path += f"?ids={world['customerId']}&action=delete"
        wrong += await check_page(page, screen, path)
    assert wrong == [], "\n".join(wrong)


SIZES: dict[str, ViewportSize] = {"phone": {"width": 360, "height": 740}, "desktop": {"width": 1280, "height": 800}}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
FIRST_LOAD, LATER_LOAD = 120_000, 30_000


async def test_pages_of_a_client(
    open_page: OpenPage, public_server: TestServer, studio: tuple[CoachClient, World], client_world: World
) -> None:
    coach, world = studio[0], client_world
    page = await open_page(has_touch=True, reduced_motion="reduce")
    await sign_client_in(page.context, public_server, coach, world["customerId"])
    wrong = []
    for client_page in OF_CLIENTS:
        path = filled(client_page, world)
        for size, scheme in itertools.product(SIZES, SCHEMES):
            await page.set_viewport_size(SIZES[size])
            await page.emulate_media(color_scheme=scheme)
            if (size, scheme) == ("phone", "light"):
                response = await page.goto(path)
                assert response is not None
                assert response.status == 200, path
            await picture(page, f"train-{size}-{scheme}", file_name(client_page.path))
            if size == "phone":
                wrong += await serious(page)
        await page.set_viewport_size({"width": 320, "height": 640})
        if await page.evaluate(_WIDER):
            wrong.append(f"{path} is wider than the screen")
        await page.set_viewport_size(SIZES["phone"])
        await page.evaluate("document.documentElement.style.fontSize = '200%'")
        await picture(page, "train-phone-large-text", file_name(client_page.path))
        if await page.evaluate(_WIDER):
            wrong.append(f"{path} is wider than the screen with large text")
        cut = await page.evaluate(_CUT)
        wrong += [f"{path} with large text is cut off: {each}" for each in cut]
    assert wrong == [], "\n".join(wrong)


async def test_pages_of_a_client_are_small(
    open_page: OpenPage, public_server: TestServer, studio: tuple[CoachClient, World], client_world: World
) -> None:
    coach, world = studio[0], client_world
    page = await open_page(**SCREENS["small"])
    await sign_client_in(page.context, public_server, coach, world["customerId"])
    network = await page.context.new_cdp_session(page)
    await network.send("Network.enable")
    transferred: list[float] = []
    network.on("Network.loadingFinished", lambda event: transferred.append(event["encodedDataLength"]))
    sizes: dict[str, int] = {}
    for path in ["/train", *(filled(client_page, world) for client_page in OF_CLIENTS)]:
        transferred.clear()
        await page.goto(path, wait_until="networkidle")
        sizes.setdefault(path, int(sum(transferred)))
    (OUTPUT / "train-sizes.json").write_text(json.dumps(sizes, indent=2))
    assert sizes.pop("/train") < FIRST_LOAD
    assert {path: size for path, size in sizes.items() if size >= LATER_LOAD} == {}

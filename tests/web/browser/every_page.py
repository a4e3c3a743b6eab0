"""Every page of the service, and what is checked on each in several looks, for which it is loaded once."""

from __future__ import annotations

import base64
import itertools
import os
import re
from typing import Any, Literal

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import CDPSession, Page

from coaching_service.web import pages, views
from tests.support.declared_world import World
from tests.web.browser.conftest import OUTPUT, find_violations
from tests.web.test_pages import filled

PAGES = [page for page in views.list_pages() if page.method == "GET" and page.path.startswith(("/app/", "/train"))]
OUTSIDE = [page for page in PAGES if page.access.audience == "public" and page.template]
INSIDE = [page for page in PAGES if page.access.audience not in ("public", "customer") and page.template]
OF_CLIENTS = [page for page in PAGES if page.access.audience == "customer" and page.template]

Size = Literal["desktop", "tablet", "zoomed", "phone"]
Scheme = Literal["light", "dark"]
# In CSS pixels: `zoomed` is a desktop at 200 %.
SIZES: dict[Size, tuple[int, int]] = {
    "desktop": (1440, 900),
    "tablet": (820, 1180),
    "zoomed": (720, 450),
    "phone": (390, 844),
}
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
LOOKS = tuple(itertools.product(SIZES, SCHEMES))
WIDER = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


def with_large_text(function: str) -> str:
    """Return a function of the page that returns what another one does while text is twice as large."""
    return f"""() => {{
      document.documentElement.style.fontSize = "200%";
      const result = ({function})();
      document.documentElement.style.fontSize = "";
      return result;
    }}"""


def path_of(page: pages.Page, world: World) -> str:
    """Return the path of a page with the identifiers and the query that it needs to show data."""
    path = filled(page, world)
    if path.endswith(("/reset-password", "/first-access")):
        return path + "?token=from-a-mail"
    if path.endswith(("/bulk", "/bulk/schedules")):
        return f"{path}?ids={world['customerId']}&action=delete"
    return path


def name_of(path: str) -> str:
    """Return the name of the screenshot of a page."""
    return re.sub(r"[0-9a-f]{24}|{\w+}", "id", path.partition("?")[0].strip("/")).replace("/", "-")


class Screen:
    """A window whose page, once it is loaded, takes the size of other devices; `wrong` is what was found on all pages."""

    def __init__(self, page: Page, devices: CDPSession) -> None:
        self.page, self._devices = page, devices
        self._scheme: Scheme | None = None
        self._device: dict[str, Any] = {}
        self.path = ""
        self.wrong: list[str] = []

    @classmethod
    async def of(cls, page: Page) -> Screen:
        """Return the screen of a window, whose pages all begin with the script that checks accessibility."""
        await page.add_init_script(AXE_SCRIPT)
        return cls(page, await page.context.new_cdp_session(page))

    async def open(self, path: str, folder: str = "") -> None:
        """Load a page on a desktop; `folder`: of its pictures, if PICTURES is set."""
        self.path = path
        await self.show("desktop", "light")
        response = await self.page.goto(path)
        assert response is not None
        assert response.status == 200, path
        for size, scheme in LOOKS if os.environ.get("PICTURES") else ():
            await self.show(size, scheme)
            await self.take_picture(f"{folder}{size}-{scheme}")

    async def take_picture(self, look: str) -> None:
        """Save a screenshot of the whole page as the device shows it; Playwright would lay it out for its own window."""
        size = (await self._devices.send("Page.getLayoutMetrics"))["cssContentSize"]
        options = {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        taken = await self._devices.send("Page.captureScreenshot", options)
        path = OUTPUT / look / f"{name_of(self.path)}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    async def show(self, size: Size, scheme: Scheme) -> None:
        """Show the page on another device, with a mouse or, on a phone, with touch."""
        await self.resize(*SIZES[size], is_phone=size == "phone")
        if scheme != self._scheme:
            await self.page.emulate_media(color_scheme=scheme)
        self._scheme = scheme

    async def resize(self, width: int, height: int = 740, *, is_phone: bool = True) -> None:
        """Change the size of the screen. A browser context has one kind of device only."""
        device: dict[str, Any] = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone}
        if device != self._device:
            await self._devices.send("Emulation.setDeviceMetricsOverride", device)
        self._device = device

    async def check(self, size: Size, scheme: Scheme) -> None:
        """Note the violations of accessibility in a look, and whether the page is too wide."""
        await self.show(size, scheme)
        await self.check_width(size)
        self.wrong += [f"{size}, {scheme}: {each}" for each in await find_violations(self.page)]

    async def check_width(self, where: str) -> None:
        """Note whether the page is wider than the screen."""
        if await self.page.evaluate(WIDER):
            self.wrong.append(f"{self.path} is wider than the screen: {where}")

    async def enlarge_text(self, size: str) -> None:
        """Set the size of text, such as 200%; an empty one keeps the size of the page."""
        await self.page.evaluate("(size) => document.documentElement.style.fontSize = size", size)

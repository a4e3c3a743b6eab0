"""Take a picture of each page of the web application, in several widths and both themes.

Starts the service with the demo company in a temporary folder, signs a coach and a client in, and follows the links of
the pages to one page of each declared path. A page is loaded once, and then shown in each look.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import click
from PIL import Image
from playwright.async_api import Browser, BrowserContext, ViewportSize, async_playwright

from coaching_service.web import views
from coaching_service.web.pages import IDENTIFIER

HEIGHTS = {1440: 900, 768: 1024, 390: 844}
THEMES = ("light", "dark")
# The pictures of the README: file, declared path, width.
README = (("today", "/app/attention", 1440), ("workout", "/train/workouts/{wblockId}", 390))
IMAGES = Path(__file__).parents[1] / "docs" / "images"
CLIENT_NAME, CLIENT_PASSWORD = "Amara", "a password for pictures"
_LINK = re.compile(r'href="(/(?:app|train)[^"#]*)')
_PATTERNS = {
    page.path: re.compile(re.sub(r"{\w+}", f"({IDENTIFIER}|[^/]+)", page.path))
    for page in views.list_pages()
    if page.method == "GET" and page.template
}


@contextmanager
def running_demo() -> Iterator[dict[str, str]]:
    """The service with the demo company; yields the content of demo.json."""
    with tempfile.TemporaryDirectory(prefix="coaching-pictures-") as folder:
        command = [sys.executable, "-m", "coaching_service", "serve", "--demo", "--port", "0", "--data", folder]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # noqa: S603 - fixed
        try:
            for line in process.stdout or ():
                if line.startswith("Stop"):
                    break
            file = Path(folder) / "demo.json"
            while not file.exists() and process.poll() is None:
                time.sleep(0.1)  # before the next request
            yield json.loads(file.read_text())
        finally:
            process.terminate()
            process.wait()


def declared_path(address: str) -> str | None:
    """The declared path of a page, by the path of an address."""
    path = address.partition("?")[0]
    matching = [declared for declared, pattern in _PATTERNS.items() if pattern.fullmatch(path)]
    return min(matching, key=lambda declared: declared.count("{"), default=None)


async def visit_links(context: BrowserContext, starts: tuple[str, ...]) -> dict[str, str]:
    """Follow links from `starts`; returns one address for each declared path that they lead to, the first."""
    addresses: dict[str, str] = {}
    queue = deque(starts)
    while queue:
        address = queue.popleft()
        declared = declared_path(address)
        if declared is None or declared in addresses:
            continue
        response = await context.request.get(address)
        if response.status != 200 or "text/html" not in response.headers.get("content-type", ""):
            continue
        addresses[declared] = address
        queue.extend(link.replace("&amp;", "&") for link in _LINK.findall(await response.text()))
    return addresses


def file_name(path: str) -> str:
    """The name of the pictures of a page."""
    return re.sub(r"[{}]", "", path.strip("/")).replace("/", "-") or "start"


async def take(
    context: BrowserContext, addresses: dict[str, str], folder: Path, widths: list[int], themes: list[str], full: bool
) -> None:
    """Save the pictures of each page."""
    page = await context.new_page()
    for declared, address in addresses.items():
        await page.set_viewport_size(ViewportSize(width=widths[0], height=HEIGHTS[widths[0]]))
        await page.goto(address, wait_until="networkidle")
        for width in widths:
            await page.set_viewport_size(ViewportSize(width=width, height=HEIGHTS[width]))
            for theme in themes:
                await page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
                place = folder / f"{width}-{theme}"
                place.mkdir(parents=True, exist_ok=True)
                await page.screenshot(path=place / f"{file_name(declared)}.png", full_page=full)
    await page.close()


async def sign_in(browser: Browser, base: str, email: str, password: str) -> BrowserContext:
    """A window with a user signed in."""
    context = await browser.new_context(base_url=base, reduced_motion="reduce")
    page = await context.new_page()
    await page.goto("/app/sign-in")
    await page.get_by_label("Email").fill(email)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url(re.compile("/app/attention|/train"))
    await page.close()
    return context


async def take_for_readme(context: BrowserContext, addresses: dict[str, str]) -> None:
    """Write the pictures of the README that are in `addresses`, as WebP."""
    for name, declared, width in README:
        if declared not in addresses:
            continue
        page = await context.new_page()
        await page.set_viewport_size(ViewportSize(width=width, height=HEIGHTS[width]))
        await page.goto(addresses[declared], wait_until="networkidle")
        IMAGES.mkdir(exist_ok=True)
        with Image.open(BytesIO(await page.screenshot())) as picture:
            picture.save(IMAGES / f"{name}.webp", quality=82, method=6)
        await page.close()


async def set_client_password(browser: Browser, demo: dict[str, str]) -> tuple[str, str]:
    """Give a client of the demo company a password; returns their identifier and e-mail address."""
    context = await browser.new_context(base_url=demo["baseUrl"])
    login = await context.request.post("/auth/login", data={"email": demo["email"], "password": demo["password"]})
    headers = {"Authorization": f"Bearer {(await login.json())['accessToken']}"}
    matching = await context.request.get(
        f"/coach/customers?archived=false&pageSize=20&pageNum=1&keywords={CLIENT_NAME}", headers=headers
    )
    client = (await matching.json())["docs"][0]
    path = f"/coach/customers/{client['_id']}/password"
    changed = await context.request.put(path, data={"password": CLIENT_PASSWORD}, headers=headers)
    if not changed.ok:
        raise click.ClickException(await changed.text())
    await context.close()
    return client["_id"], client["email"]


async def run(
    demo: dict[str, str], folder: Path | None, only: str, widths: list[int], themes: list[str], full: bool
) -> int:
    """Take pictures of the pages whose path contains `only`, or without `folder` the README's; returns their number."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        raise click.ClickException("Chromium is needed: scripts/test --browser installs it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        client_id, client_email = await set_client_password(browser, demo)
        coach_starts = (f"/app/customers/{client_id}", "/app/attention", "/app/settings/company")
        visitors = [
            (await browser.new_context(base_url=demo["baseUrl"]), ("/app/sign-in",)),
            (await sign_in(browser, demo["baseUrl"], demo["email"], demo["password"]), coach_starts),
            (await sign_in(browser, demo["baseUrl"], client_email, CLIENT_PASSWORD), ("/train",)),
        ]
        visited: set[str] = set()
        for context, starts in visitors:
            linked = await visit_links(context, starts)
            addresses = {path: address for path, address in linked.items() if only in path and path not in visited}
            visited |= set(addresses)
            if folder is None:
                await take_for_readme(context, addresses)
            else:
                await take(context, addresses, folder, widths, themes, full)
        await browser.close()
    return len(visited)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option("--only", default="", help="Only pages whose declared path contains this text.")
@click.option("--width", "widths", type=click.Choice([str(each) for each in HEIGHTS]), multiple=True, help="[all]")
@click.option("--theme", "themes", type=click.Choice(THEMES), multiple=True, help="[both]")
@click.option("--screen", is_flag=True, help="Only what a screen shows, instead of the whole page.")
def main(folder: Path | None, only: str, widths: tuple[str, ...], themes: tuple[str, ...], screen: bool) -> None:
    """Save pictures as FOLDER/WIDTH-THEME/PAGE.png; without FOLDER, renew those of the README."""
    with running_demo() as demo:
        chosen = [int(each) for each in widths] or list(HEIGHTS)
        number = asyncio.run(run(demo, folder, only, chosen, list(themes or THEMES), not screen))
    click.echo(f"{number} pages in {folder}" if folder else f"{len(README)} pictures in {IMAGES}")


if __name__ == "__main__":
    main()

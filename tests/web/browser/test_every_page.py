"""Each kind of page in one look, the next page in the next one: no errors, accessible, no horizontal overflow.

Each page is loaded once. The proofs have all pages, and `proofs/test_every_look.py` all looks of all pages.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.web import pages
from tests.support.client import CoachClient
from tests.support.declared_world import World
from tests.support.sampled import MORE, some
from tests.web.browser.conftest import OUTPUT, OpenPage, sign_in
from tests.web.browser.every_page import INSIDE, LOOKS, OF_CLIENTS, OUTSIDE, WIDER, Screen, path_of, with_large_text
from tests.web.browser.phone import sign_client_in

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
_OF_DESKTOPS = f"() => [({_PRIMARY})(), ({_EMPTY})(), ({with_large_text(WIDER)})()]"
_OF_PHONES = with_large_text(f"() => [({WIDER})(), ({_CUT})()]")
# Pages that only ask before they delete or end something look alike.
_ASKS = re.compile(r"/(delete|remove|revoke|disconnect|end|reset-second-factor)$")
_FIRST_LOAD, _LATER_LOAD = 120_000, 30_000


def _choose(of_pages: Sequence[pages.Page]) -> list[pages.Page]:
    """Return the first page of each template, and of those that only ask a few; in the proofs all."""
    first = {page.template: page for page in reversed(of_pages)}
    chosen = [page for page in of_pages if MORE > 1 or first[page.template] is page]
    asking = some([page for page in chosen if _ASKS.search(page.path)], 6)
    return [page for page in chosen if page in asking or not _ASKS.search(page.path)]


async def _check_page(screen: Screen, number: int, path: str) -> None:
    await screen.open(path)
    primary, empty, is_wider = await screen.page.evaluate(_OF_DESKTOPS)
    screen.wrong += [f"{path} has several primary buttons: {primary}"] if len(primary) > 1 else []
    screen.wrong += [f"a third of {path} is empty"] if empty > 1 / 3 else []
    screen.wrong += [f"{path} is wider than the screen: large text"] if is_wider else []
    await screen.check(*LOOKS[number % len(LOOKS)])
    await screen.resize(360)
    await screen.check_width("a small phone")


async def test_public_pages(open_page: OpenPage) -> None:
    screen = await Screen.of(await open_page(reduced_motion="reduce"))
    for number, page in enumerate(OUTSIDE):
        await _check_page(screen, number, path_of(page, {}))
    assert screen.wrong == [], "\n".join(screen.wrong)


@pytest.mark.parametrize("half", [0, 1])
async def test_pages_of_a_signed_in_coach(open_page: OpenPage, studio: tuple[CoachClient, World], half: int) -> None:
    coach, world = studio
    screen = await Screen.of(await open_page(reduced_motion="reduce"))
    await sign_in(screen.page, coach)
    of_half = _choose(INSIDE)[half::2]
    for number, page in enumerate(some(of_half, len(of_half) // 2)):
        await _check_page(screen, number, path_of(page, world))
    assert screen.wrong == [], "\n".join(screen.wrong)


async def test_pages_of_a_client(
    open_page: OpenPage, public_server: TestServer, studio: tuple[CoachClient, World], client_world: World
) -> None:
    coach, world = studio[0], client_world
    screen = await Screen.of(await open_page(has_touch=True, reduced_motion="reduce"))
    page = screen.page
    await sign_client_in(page.context, public_server, coach, world["customerId"])
    network = await page.context.new_cdp_session(page)
    await network.send("Network.enable")
    # It sends pages that it has stored.
    await network.send("Network.setBypassServiceWorker", {"bypass": True})
    transferred: list[float] = []
    network.on("Network.loadingFinished", lambda event: transferred.append(event["encodedDataLength"]))
    sizes: dict[str, int] = {}
    for number, path in enumerate(
        ["/train", *(path_of(each, world) for each in _choose(OF_CLIENTS) if each.path != "/train")]
    ):
        transferred.clear()
        await screen.open(path, "train-")
        if await page.evaluate(with_large_text(WIDER)):
            screen.wrong.append(f"{path} is wider than the screen: large text")
        await screen.check(*LOOKS[number % len(LOOKS)])
        await screen.resize(320, is_phone=False)
        await screen.check_width("a very small phone")
        await screen.resize(360, is_phone=False)
        is_wider, cut = await page.evaluate(_OF_PHONES)
        screen.wrong += [f"{path} is wider than the screen: a phone with large text"] if is_wider else []
        screen.wrong += [f"{path} with large text is cut off: {each}" for each in cut]
        if os.environ.get("PICTURES"):
            await screen.enlarge_text("200%")
            await screen.take_picture("train-phone-large-text")
        sizes[path] = int(sum(transferred))
    assert screen.wrong == [], "\n".join(screen.wrong)
    OUTPUT.mkdir(exist_ok=True)
    (OUTPUT / "train-sizes.json").write_text(json.dumps(sizes, indent=2))
    assert sizes.pop("/train") < _FIRST_LOAD
    assert {path: size for path, size in sizes.items() if size >= _LATER_LOAD} == {}

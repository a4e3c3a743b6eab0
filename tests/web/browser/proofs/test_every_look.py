"""Every page is accessible on each screen, in both color schemes: of these looks the other tests have a choice."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient
from tests.support.declared_world import World
from tests.web.browser.conftest import OpenPage, sign_in
from tests.web.browser.every_page import INSIDE, LOOKS, OF_CLIENTS, OUTSIDE, Screen, path_of
from tests.web.browser.phone import sign_client_in


async def _check(screen: Screen, paths: list[str]) -> None:
    for path in paths:
        await screen.open(path)
        for size, scheme in LOOKS:
            await screen.check(size, scheme)
    assert screen.wrong == [], "\n".join(screen.wrong)


async def test_public_pages(open_page: OpenPage) -> None:
    await _check(await Screen.of(await open_page(reduced_motion="reduce")), [path_of(page, {}) for page in OUTSIDE])


@pytest.mark.parametrize("half", [0, 1])
async def test_pages_of_coaches(open_page: OpenPage, studio: tuple[CoachClient, World], half: int) -> None:
    coach, world = studio
    screen = await Screen.of(await open_page(reduced_motion="reduce"))
    await sign_in(screen.page, coach)
    await _check(screen, [path_of(page, world) for page in INSIDE[half::2]])


async def test_pages_of_clients(
    open_page: OpenPage, public_server: TestServer, studio: tuple[CoachClient, World], client_world: World
) -> None:
    screen = await Screen.of(await open_page(has_touch=True, reduced_motion="reduce"))
    await sign_client_in(screen.page.context, public_server, studio[0], client_world["customerId"])
    await _check(screen, [path_of(page, client_world) for page in OF_CLIENTS])

"""Pages of coaches are compressed, except those that another site opened, which may have chosen a part of them."""

from __future__ import annotations

import gzip
import re

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.visitor import Visitor

LARGEST_TODAY = 60_000  # bytes sent
_TOKEN = re.compile(r'name="csrf" value="([^"]+)"')


def browser_of(visitor: Visitor, server: TestServer) -> aiohttp.ClientSession:
    """A browser with the session of a visitor, which shows the bytes that were sent."""
    headers = {"Accept-Encoding": "gzip", "Cookie": f"coach_session={visitor.cookies()['coach_session']}"}
    return aiohttp.ClientSession(server.make_url("/"), auto_decompress=False, headers=headers)


async def test_today_with_100_clients_is_a_small_page(
    coach: CoachClient, server: TestServer, owner_page: Visitor
) -> None:
    await coach.create_customers(*(f"Client {number}" for number in range(100)), surname="Example")
    await renew_figures(coach.ctx)
    sizes, tokens, page = set(), set(), ""
    async with browser_of(owner_page, server) as browser:
        for _ in range(5):
            async with browser.get("/app/attention?reason=nothing_scheduled") as response:
                assert response.headers["Content-Encoding"] == "gzip"
                sent = await response.read()
            page = gzip.decompress(sent).decode()
            sizes.add(len(sent))
            tokens |= set(_TOKEN.findall(page))
    assert page.count('id="name-') == 8, "the first part of the list, not a line for all"
    assert max(sizes) < LARGEST_TODAY, sizes
    assert len(sizes) > 1, "the size is padded at random"
    assert len(tokens) == 5, "each response has another token, so that the size reveals none"


@pytest.mark.parametrize(
    ("site", "is_compressed"),
    [(None, True), ("none", True), ("same-origin", True), ("same-site", False), ("cross-site", False)],
)
async def test_page_that_another_site_opened_is_not_compressed(
    coach: CoachClient, server: TestServer, owner_page: Visitor, site: str | None, is_compressed: bool
) -> None:
    await coach.create_customer("Ana")
    headers = {"Sec-Fetch-Site": site} if site else {}
    async with browser_of(owner_page, server) as browser:
        for path in ("/app/customers?keywords=an", "/app/exercises"):
            async with browser.get(path, headers=headers) as response:
                assert response.status == 200
                assert (response.headers.get("Content-Encoding") == "gzip") is is_compressed
                assert "Accept-Encoding" in response.headers.get("Vary", "") or not is_compressed

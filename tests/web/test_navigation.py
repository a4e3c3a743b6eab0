"""Menus: where each page is."""

from __future__ import annotations

import re

from coaching_service.web import views
from tests.support.client import CoachClient
from tests.support.visitor import Visitor

# Opened with a selection of clients, and the form that the list of the team leads to.
_OTHERWISE = {"/app/customers/bulk", "/app/settings/team/new"}


async def test_every_page_is_at_most_two_clicks_away(coach: CoachClient, owner_page: Visitor) -> None:
    """From any page: an area of the navigation, then a link or tab of its first page; a client's pages are tabs."""
    start = (await owner_page.get("/app/attention")).ok()
    areas = {link for link in start.links if re.fullmatch(r"/app/[a-z]+", link)}
    links = set(areas)
    for area in areas:
        links |= {link.partition("?")[0] for link in (await owner_page.get(area)).ok().links}
    ana = await coach.create_customer("Ana")
    base = f"/app/customers/{ana['_id']}"
    of_client = {link.partition("?")[0] for link in (await owner_page.get(base)).ok().links}

    pages = [page for page in views.list_pages() if page.method == "GET" and page.access.audience == "coach"]
    alone = {page.path for page in pages if "{" not in page.path and page.template}
    tabs = {page.path for page in pages if re.fullmatch(r"/app/customers/\{customerId\}/[a-z-]+", page.path)}
    assert alone - links - _OTHERWISE == set()
    assert {path.replace("{customerId}", ana["_id"]) for path in tabs} - of_client == set()

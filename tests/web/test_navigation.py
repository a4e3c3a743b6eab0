"""Menus: where each page is."""

from __future__ import annotations

import re

from coaching_service.web import views
from tests.support.client import CoachClient
from tests.support.visitor import Visitor

# Opened with a selection of clients, what the history and each large change lead to, the form of the team, the search
# for a name of a sheet, the help of a settings page, what fields for an exercise open without script, and the search,
# whose field is on every page.
_OTHERWISE = {
    "/app/customers/bulk",
    "/app/customers/bulk/schedules",
    "/app/customers/groups/program",
    "/app/jobs",
    "/app/pick-exercise",
    "/app/programs/import/exercises",
    "/app/search",
    "/app/settings/notifications/phones",
    "/app/settings/team/new",
}
# What adds the first entry is visible next to the empty list, which has no link to it.
_FORM_BESIDE = {
    "/app/customers/{customerId}/check-ins",
    "/app/customers/{customerId}/messages",
    "/app/settings/assistants",
    "/app/settings/audit-log",
    "/app/settings/sign-ins",
    "/app/settings/webhooks",
}


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
    tabs = {page.path for page in pages if re.fullmatch(r"/app/customers/\{customerId\}/(?!delete)[a-z-]+", page.path)}
    assert alone - links - _OTHERWISE == set()
    assert {path.replace("{customerId}", ana["_id"]) for path in tabs} - of_client == set()


async def test_every_empty_list_has_one_action_or_its_form_beside_it(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    pages = [page for page in views.list_pages() if page.method == "GET" and page.access.audience == "coach"]
    drawn = [page.path for page in pages if page.template]
    paths = {path for path in drawn if "{" not in path}
    paths |= {path for path in drawn if re.fullmatch(r"/app/customers/\{customerId\}(/[a-z-]+)*", path)}
    empty, wrong = 0, []
    for path in sorted(paths - {"/app/customers/bulk"}):
        html = (await owner_page.get(path.replace("{customerId}", ana["_id"]))).html
        for text in re.findall(r'<div class="empty">(.*?)</div>', html, re.DOTALL):
            empty += 1
            anchors = re.findall(r'<a [^>]*href="([^"]*)"', text)
            targets = {f"#{each}" for each in re.findall(r' id="([^"]*)"', html)}
            if len(anchors) != (path not in _FORM_BESIDE) or (
                anchors and anchors[0].startswith("#") and anchors[0] not in targets
            ):
                wrong.append((path, " ".join(re.sub("<.*?>", " ", text).split())))
    assert empty > 10
    assert wrong == []

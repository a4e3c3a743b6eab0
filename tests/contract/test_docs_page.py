"""The /docs page shows every operation with its curl command, its examples and the schemas it refers to."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from coaching_service.documentation.operator_endpoints import curl_command, list_guides, render, render_guide, type_name
from coaching_service.http_server import GUIDES_PATH
from tests.support.client import CoachClient, document

ROUTES = routes_of(features.ROUTES)


@cache
def rendered() -> str:
    """The page."""
    return render(document())


DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_every_operation_schema_and_curl_command() -> None:
    page = rendered()
    for route in ROUTES:
        assert f'<article id="{route.operation_id}">' in page
    for name in document()["components"]["schemas"]:
        assert f'<article id="schema-{name}">' in page
    assert page.count("<summary>Copy as curl</summary>") == len(ROUTES)
    assert page.count("<script") == page.count('<script src="/docs/docs.js" defer>') == 1


def test_every_link_of_the_page_leads_to_something_on_it() -> None:
    page = rendered()
    targets = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= targets


def test_references_are_expanded() -> None:
    page = rendered()
    article = page.split('<article id="createWorkoutItem">')[1].split("</article>")[0]
    assert "<summary>NewExerciseItem</summary>" in article
    assert "minPlannedReps" in article
    assert "&#34;exerciseSets&#34;" in article, "the example"


def test_a_curl_command_has_the_credential_the_query_and_the_example() -> None:
    operations = document()["paths"]["/coach/customers"]
    read = curl_command(document(), "GET", "/coach/customers", operations["get"])
    assert read == (
        "curl -X GET 'http://coaching.test/coach/customers?pageSize=1&pageNum=1&archived=false' \\\n"
        '  -H "X-API-Key: $API_KEY"'
    )
    create = curl_command(document(), "POST", "/coach/customers", operations["post"])
    assert "-H 'Content-Type: application/json'" in create
    assert '"name": "Ana"' in create


def test_a_curl_command_of_an_upload_names_a_file() -> None:
    path = "/coach/customers/{customerId}/progress-photos"
    command = curl_command(document(), "POST", path, document()["paths"][path]["post"])
    assert "-F imageFile=@file" in command
    assert "-F imageSideIndex=1" in command


def test_types_are_named_in_words() -> None:
    assert type_name({"type": ["string", "null"], "format": "date"}) == "string (date) or null"
    assert type_name({"type": "array", "items": {"$ref": "#/components/schemas/Note"}}) == "array of Note"
    assert type_name({"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]}) == '"a" or "b" or null'


async def test_the_page_has_an_icon(anonymous: CoachClient) -> None:
    page = await anonymous.get("/docs")
    assert b'href="/docs/icon.svg"' in page.raw
    assert "img-src 'self'" in page.headers["Content-Security-Policy"]
    icon = await anonymous.get("/docs/icon.svg")
    assert icon.headers["Content-Type"].startswith("image/svg+xml")


@pytest.mark.parametrize("path", ["/docs", "/docs/docs.js", "/docs/guides/integrations", "/swagger-json"])
async def test_pages_are_compressed_and_sent_once(anonymous: CoachClient, path: str) -> None:
    compressed = await anonymous.send("GET", path, headers={"Accept-Encoding": "gzip"})
    plain = await anonymous.send("GET", path, headers={"Accept-Encoding": "identity"})
    assert (compressed.headers["Content-Encoding"], "Content-Encoding" in plain.headers) == ("gzip", False)
    assert int(compressed.headers["Content-Length"]) < 300_000
    assert compressed.headers["ETag"] == f"W/{plain.headers['ETag']}"
    for reply in (compressed, plain):
        again = await anonymous.send("GET", path, headers={"If-None-Match": reply.headers["ETag"]})
        assert (again.status, again.raw) == (304, b"")


def test_every_guide_is_served_and_linked() -> None:
    names = {path.stem for folder in (DOCS, DOCS / "tasks") for path in folder.glob("*.md")}
    page = render(document(), list_guides(), GUIDES_PATH)
    assert {guide.name for guide in list_guides()} == names
    assert set(re.findall(rf'href="{GUIDES_PATH}/([^"]+)"', page)) == names


def test_links_between_guides_lead_to_a_heading() -> None:
    pages = {guide.name: render_guide(guide) for guide in list_guides()}
    anchors = {name: set(re.findall(r'id="([^"]+)"', page)) for name, page in pages.items()}
    links = [
        (name, target or name, anchor)
        for name, page in pages.items()
        for target, anchor in re.findall(rf'href="(?:{GUIDES_PATH}/([^"#]+))?(?:#([^"]+))?"', page)
    ]
    assert ("integrations", "configuration", "") in links
    assert [link for link in links if link[1] not in pages or (link[2] and link[2] not in anchors[link[1]])] == []
    assert not any(re.search(r'href="[^"]*\.md|<img', page) for page in pages.values())


async def test_a_guide_is_a_page(anonymous: CoachClient) -> None:
    page = await anonymous.get("/docs/guides/sync-a-crm")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert b"<h1 id=" in page.raw
    assert b"<pre><code class=" in page.raw
    (await anonymous.get("/docs/guides/unknown")).refused(404)


async def test_links_of_the_markdown_of_a_guide_lead_to_other_guides(anonymous: CoachClient) -> None:
    text = (await anonymous.get(f"{GUIDES_PATH}/integrations.md")).raw.decode()
    assert f"[Sync a CRM]({GUIDES_PATH}/sync-a-crm.md)" in text
    assert f"[quickstart]({GUIDES_PATH}" not in text, "it is in a file that is not served"
    served = {f"{GUIDES_PATH}/{guide.name}.md" for guide in list_guides()}
    for guide in list_guides():
        links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?s)```.*?```|`[^`]*`", "", guide.text))
        inside = {link.partition("#")[0] for link in links if not re.match("https?:|mailto:|#", link)}
        assert inside <= served, guide.name

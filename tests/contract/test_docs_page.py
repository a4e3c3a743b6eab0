"""The /docs page shows every operation with its curl command, its examples and the schemas it refers to."""

from __future__ import annotations

import re

from coaching_service import features
from coaching_service.core.http.docs_page import curl_command, render, type_name
from coaching_service.core.http.routes import routes_of
from tests.support.client import CoachClient, document

ROUTES = routes_of(features.ROUTES)


def test_the_page_has_every_operation_schema_and_curl_command() -> None:
    page = render(document())
    for route in ROUTES:
        assert f'<article id="{route.operation_id}">' in page
    for name in document()["components"]["schemas"]:
        assert f'<article id="schema-{name}">' in page
    assert page.count("<summary>Copy as curl</summary>") == len(ROUTES)
    assert "<script" not in page


def test_every_link_of_the_page_leads_to_something_on_it() -> None:
    page = render(document())
    targets = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= targets


def test_references_are_expanded() -> None:
    page = render(document())
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

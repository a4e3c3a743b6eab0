"""Notes of coaches on a client: HTML, sanitised before it is stored."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.client import UNKNOWN, CoachClient
from tests.support.sampled import some
from tests.support.training import Json, client_path, employee_key, feed, feed_types


async def write(coach: CoachClient, customer: Json, content: str) -> Json:
    note: Json = (await coach.post(client_path(customer, "notes"), {"content": content})).ok(201)
    return note


async def notes(coach: CoachClient, customer: Json) -> list[Json]:
    listed: list[Json] = (await coach.get(client_path(customer, "notes"))).ok()
    return listed


CONTENTS: list[tuple[str, str]] = [
        ("Left knee: go easy.", "Left knee: go easy."),
        ("  <p>Bold <b>move</b></p>\n", "<p>Bold <b>move</b></p>"),
        ("<ul><li>a</li><li>b</li></ul>", "<ul><li>a</li><li>b</li></ul>"),
        ("5 < 6 & 7 > 2", "5 &lt; 6 &amp; 7 &gt; 2"),
        ("a<script>alert(1)</script>b", "ab"),
        ("a<SCRIPT SRC=//evil.example/x.js></SCRIPT>b", "ab"),
        ('<p onclick="alert(1)">a</p>', "<p>a</p>"),
        ('a<img src=x onerror="alert(1)">b', "ab"),
        ('a<img src="https://evil.example/pixel.png">b', "ab"),
        ("a<svg onload=alert(1)><circle/></svg>b", "ab"),
        ("a<style>body{display:none}</style>b", "ab"),
        ('<p style="background:url(https://evil.example)">a</p>', "<p>a</p>"),
        ('a<iframe src="https://evil.example"></iframe>b', "ab"),
        ('<form action="/x"><input name="q"><button>a</button></form>', "a"),
        ('<p class="x" id="y" data-z="1">a</p>', "<p>a</p>"),
        ("<a href=\"javascript:alert(1)\">a</a>", '<a rel="noopener noreferrer nofollow">a</a>'),
        ("<a href=\" jAvA&#x0A;script:alert(1)\">a</a>", '<a rel="noopener noreferrer nofollow">a</a>'),
        ("<a href=\"&#106;avascript:alert(1)\">a</a>", '<a rel="noopener noreferrer nofollow">a</a>'),
        ("<a href=\"data:text/html,<script>alert(1)</script>\">a</a>", '<a rel="noopener noreferrer nofollow">a</a>'),
        ("<a href=\"vbscript:x\" target=\"_blank\">a</a>", '<a rel="noopener noreferrer nofollow">a</a>'),
        (
            '<a href="https://example.com/?a=1&b=2">a</a>',
            '<a href="https://example.com/?a=1&amp;b=2" rel="noopener noreferrer nofollow">a</a>',
        ),
        ('<a href="mailto:a@example.com">a</a>', '<a href="mailto:a@example.com" rel="noopener noreferrer nofollow">a</a>'),
        ("a<scr<script>ipt>alert(1)</scr</script>ipt>b", "aipt&gt;alert(1)ipt&gt;b"),
        ("<b>bold <i>both</b> italic</i>", "<b>bold <i>both</i></b><i> italic</i>"),
        ("<p>never closed", "<p>never closed</p>"),
        ("a<!-- <script>alert(1)</script> -->b", "ab"),
        ("a<math><mtext><script>alert(1)</script></mtext></math>b", "ab"),
        ("<custom-tag>a</custom-tag>", "a"),
    ]  # fmt: skip


async def test_active_content_is_removed(coach: CoachClient) -> None:
    """Contract 4: `content` is HTML, sanitised on the way in."""
    ana = await coach.create_customer()
    for sent, stored in CONTENTS:
        note = await write(coach, ana, sent)
        assert note["content"] == stored, sent
        again = (await coach.patch(client_path(ana, "notes", note["_id"]), {"content": stored})).ok()
        assert again["content"] == stored, "clean HTML is unchanged"
    assert [each["content"] for each in await notes(coach, ana)] == [stored for _, stored in reversed(CONTENTS)]


async def test_note_is_not_longer_once_it_is_sanitised(coach: CoachClient) -> None:
    """What is stored could not be sent back, nor imported: characters are escaped, and open tags closed."""
    ana = await coach.create_customer()
    note = await write(coach, ana, "&" * 10_000)
    assert len(note["content"]) == 50_000
    path = client_path(ana, "notes", note["_id"])
    (await coach.patch(path, {"content": note["content"]})).ok()
    for content in ("&" * 10_001, "<p>x" * 12_000):
        (await coach.post(client_path(ana, "notes"), {"content": content})).refused(400, "content")
        (await coach.patch(path, {"content": content})).refused(400, "content")
    assert [each["content"] for each in await notes(coach, ana)] == [note["content"]]


HOSTILE = (
    "<script>", "</script>", "<svg/onload=alert(1)>", "<img src=x onerror=alert(1)>", "<math><mi//xlink:href=",
    '"data:x,<script>alert(1)</script>">', "<style><!--</style>", "<noscript><p title=", '"</noscript>">', "<!--", "-->",
    "<a href=javascript:alert(1)>", "<template>", "</template>", "<select><keygen>", "<table><td>", "\x00"[:0], "&lt;script&gt;",
)  # fmt: skip


@pytest.mark.parametrize("seed", some(range(6), 2))
async def test_malformed_markup_does_not_bypass_sanitising(coach: CoachClient, seed: int) -> None:
    ana = await coach.create_customer()
    pieces = HOSTILE[seed:] + HOSTILE[:seed]
    content = (await write(coach, ana, "a" + "".join(pieces) + "b"))["content"]
    lowered = content.lower().replace("&lt;", "").replace("&gt;", "")
    for word in ("<script", "<svg", "<img", "<style", "<math", "<template", "<noscript", "javascript:"):
        assert word not in lowered, content
    assert not any(f"<{tag} on" in lowered for tag in ("a", "p", "td", "table")), content


WITHOUT_TEXT: tuple[object, ...] = (
    "",
    "   \n",
    "<script>alert(1)</script>",
    "<style>p{}</style>",
    '<img src="x">',
    "<!-- a -->",
    "<p></p>",
    "<p> <br> </p>",
    "<div><img src=x onerror=alert(1)></div>",
    "<p>&nbsp;</p>",
    None,
    5,
    ["a"],
    "x" * 50_001,
)


async def test_note_without_text_is_rejected(coach: CoachClient) -> None:
    """Contract 1: required strings are not empty after trimming."""
    ana = await coach.create_customer()
    path, note = client_path(ana, "notes"), await write(coach, ana, "unchanged")
    for content in WITHOUT_TEXT:
        error = (await coach.post(path, {"content": content})).refused(400)
        assert error["message"][0].startswith("content "), content
        (await coach.patch(f"{path}/{note['_id']}", {"content": content})).refused(400, "content")
    (await coach.post(path, {})).refused(400, "content")
    assert await notes(coach, ana) == [note]


async def test_notes_are_listed_changed_and_deleted(coach: CoachClient) -> None:
    """Contract 4: plain array of `{_id, customerId, content, createdAt, updatedAt}`; contract 12 adds author and flags."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    first, second, third = [await write(coach, ana, text) for text in ("one", "two", "three")]
    other = await write(coach, bo, "Bo's")
    assert await notes(coach, ana) == [third, second, first]
    assert (first["customerId"], first["version"]) == (ana["_id"], 0)
    path = client_path(ana, "notes", second["_id"])

    changed = (await coach.patch(path, {"content": "<b>two</b>", "version": 0})).ok()

    assert (changed["content"], changed["version"], changed["createdAt"]) == ("<b>two</b>", 1, second["createdAt"])
    assert await notes(coach, ana) == [third, changed, first], "a change does not affect the order"
    (await coach.patch(path, {"content": "x", "version": 0})).refused(409)
    (await coach.patch(path, {"version": 0})).refused(409)
    assert (await coach.patch(path, {"version": 1})).ok() == changed
    assert (await coach.patch(path, {})).ok() == changed
    assert await feed_types(coach, ana) == ["note_added"] * 3

    (await coach.delete(path)).ok(204)
    (await coach.delete(path)).refused(404, "Note")
    (await coach.patch(path, {"content": "x"})).refused(404, "Note")
    assert await notes(coach, ana) == [third, first]
    assert await feed_types(coach, ana) == ["note_added"] * 2
    wrong = client_path(ana, "notes", other["_id"])
    (await coach.patch(wrong, {"content": "x"})).refused(404, "Note")
    (await coach.delete(wrong)).refused(404, "Note")
    assert await notes(coach, bo) == [other]


async def test_feed_shows_the_beginning_of_the_current_note(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    note = await write(coach, ana, "<p>Left <b>kn</b>ee:</p><ul><li>easy &amp; slow</li></ul>" + "x" * 300)
    (event,) = await feed(coach, ana)
    assert event["data"]["text"] == ("Left knee: easy & slow " + "x" * 300)[:200]

    (await coach.patch(client_path(ana, "notes", note["_id"]), {"content": "Knee is <b>fine</b>"})).ok()

    (event,) = await feed(coach, ana)
    assert event["data"] == {"noteId": note["_id"], "text": "Knee is fine"}


async def test_one_of_several_changes_of_the_same_version_succeeds(coach: CoachClient) -> None:
    """Contract 1: if the document has moved on, 409 and nothing is written."""
    ana = await coach.create_customer()
    note = await write(coach, ana, "one")
    path = client_path(ana, "notes", note["_id"])
    replies = await asyncio.gather(*(coach.patch(path, {"content": str(n), "version": 0}) for n in range(6)))
    assert sorted(reply.status for reply in replies) == [200, 409, 409, 409, 409, 409]
    [won] = [reply.json for reply in replies if reply.status == 200]
    assert await notes(coach, ana) == [won]


async def test_notes_require_a_client_in_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    note = await write(coach, ana, "one")
    (await coach.get(client_path({"_id": UNKNOWN}, "notes"))).refused(404, "Customer")
    (await coach.post(client_path({"_id": UNKNOWN}, "notes"), {"content": "x"})).refused(404, "Customer")
    scoped = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    (await scoped.get(client_path(ana, "notes"))).refused(403)
    (await scoped.delete(client_path(ana, "notes", note["_id"]))).refused(403)
    assert await notes(coach, ana) == [note]


async def test_note_has_its_author_and_flags(coach: CoachClient) -> None:
    """Contract 12: POST and PATCH take `content` and both flags."""
    ana = await coach.create_customer()
    path = client_path(ana, "notes")
    plain = await write(coach, ana, "one")
    assert plain["author"] == {"_id": str(coach.ctx.caller.id), "name": "Olga Owner"}
    assert (plain["isPinned"], plain["isHealth"]) == (False, False)
    flagged = (await coach.post(path, {"content": "Knee", "isPinned": True, "isHealth": True})).ok(201)
    assert (flagged["isPinned"], flagged["isHealth"]) == (True, True)

    changed = (await coach.patch(f"{path}/{flagged['_id']}", {"isHealth": False})).ok()

    assert changed == {**flagged, "isHealth": False, "version": 1, "updatedAt": changed["updatedAt"]}
    colleague = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    edited = (await colleague.patch(f"{path}/{flagged['_id']}", {"content": "Knee!", "version": 1})).ok()
    assert edited["author"] == flagged["author"], "a change keeps the author"
    for field in ("isPinned", "isHealth"):
        for value in (None, 1, "true"):
            (await coach.post(path, {"content": "x", field: value})).refused(400, field)
            (await coach.patch(f"{path}/{plain['_id']}", {field: value})).refused(400, field)
    (await coach.patch(f"{path}/{plain['_id']}", {"author": {"name": "x"}})).ok()
    assert await notes(coach, ana) == [edited, plain]

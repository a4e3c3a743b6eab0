"""Searching without script, and places to go to."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.training import client_path
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague


async def test_the_page_works_without_script(coach: CoachClient, owner_page: Visitor, colleague: Colleague) -> None:
    ana = await coach.create_customer("Ana", surname="López")
    (await coach.post(client_path(ana, "notes"), {"content": "<p>Ana <b>likes</b> herons & <i>rain</i></p>"})).ok(201)
    (await coach.post(client_path(ana, "messages"), {"text": "<b>Ana</b>, how are you?"})).ok(201)
    await coach.schedule(ana, name="Ana's legs")
    page = (await owner_page.get("/app/attention")).ok()
    form = page.form("/app/search", "get")
    assert [name for name, _ in form.fields] == ["q"]

    page = (await owner_page.get("/app/search?q=an")).ok()
    page.says("Clients Ana López", "Workouts Ana's legs", "Ana likes herons & rain", "<b>Ana</b>, how are you?")
    assert page.text.index("Clients") < page.text.index("Workouts") < page.text.index("Notes")
    assert f"/app/customers/{ana['_id']}" in page.links
    (await owner_page.get("/app/search?q=an+xyz")).ok().says("Nothing has all of these words.")
    page = (await owner_page.get("/app/search")).ok()
    page.says("Go to Today", "New workout", "Programs")
    (await owner_page.get("/app/search?q=tod")).ok().says("Go to Today")
    page = (await owner_page.get("/app/search?q=new+workout+lop")).ok().says("New workout for Ana López")
    [link] = [each for each in page.links if each.startswith(f"/app/customers/{ana['_id']}?week=")]
    today = str(coach.ctx.caller.today())
    assert link == f"/app/customers/{ana['_id']}?week={today}#name-{today}"
    assert f'id="name-{today}"' in (await owner_page.get(link.partition("#")[0])).ok().html
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await owner_page.get("/app/search?q=lop")).ok().says("Ana López Archived")
    assert "New workout for" not in (await owner_page.get("/app/search?q=new+workout+lop")).ok().text

    visitor = await colleague("customers.view", scope="assigned")
    page = (await visitor.get("/app/search?q=ana")).ok()
    assert "López" not in page.text, "a client of another coach"
    assert "New workout" not in (await visitor.get("/app/search")).ok().text
    no_clients = await colleague("exercises.view")
    (await no_clients.get("/app/search?q=ana")).ok(403)
    assert "/app/search" not in [each.action for each in (await no_clients.get("/app/exercises")).ok().forms]

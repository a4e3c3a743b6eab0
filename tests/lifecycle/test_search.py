"""Finding clients, and what was written about and by them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job
from coaching_service.lifecycle import search as feature
from coaching_service.people import searched_texts
from coaching_service.settings import Settings
from tests.support import transfer
from tests.support.client import MONDAY, UNKNOWN, CoachClient, Reply
from tests.support.doctor import check, findings_of
from tests.support.own_application import OwnApplication, running_application
from tests.support.service_process import until
from tests.support.training import (
    Json,
    add,
    block_with,
    client_path,
    employee_key,
    form_of,
    log,
    own_log,
    path_of,
    task,
)


async def ask(coach: CoachClient, q: str, **query: Any) -> Reply:
    return await coach.get("/coach/search", q=q, **query)


async def find(coach: CoachClient, q: str, **query: Any) -> list[Json]:
    docs: list[Json] = (await ask(coach, q, **query)).ok()["docs"]
    return docs


async def found(coach: CoachClient, q: str, **query: Any) -> list[tuple[str, str]]:
    """The types and titles of what is found, in alphabetical order."""
    return sorted((each["type"], each["title"]) for each in await find(coach, q, **query))


async def stored_entries(ctx: Context) -> int:
    return await ctx.services.db["searchTexts"].count_documents({"companyId": ctx.company_id})


@pytest.fixture(scope="module")
async def checked(settings: Settings, password_hash: str) -> AsyncIterator[OwnApplication]:
    """An application on a small database of its own, since `doctor` checks all companies of one."""
    async with running_application(settings, "search", password_hash) as application:
        yield application


@pytest.fixture
async def checked_coach(checked: OwnApplication) -> AsyncIterator[CoachClient]:
    """The owner of a new company of that application."""
    client = await checked.new_coach()
    yield client
    await client.close()


async def require_indexed(ctx: Context) -> None:
    assert findings_of(await check(ctx.services, "search")) == []


async def write_everything(coach: CoachClient) -> Json:
    """A client with a text of each type that has the words `quiet heron`."""
    client = await coach.create_customer("José", surname="Álvarez-Heron", email="quiet@example.com")
    block = await block_with(coach, client, task("Quiet walk"), form_of(), name="Heron stretches")
    walk, form = block["items"]
    await log(coach, block, walk, isCompleted=True, comment="Saw a heron; quiet as ever.")
    session = await coach.as_client(client)
    answers = [{"questionId": form["form"]["questions"][0]["_id"], "value": "Quiet week, like a HERON"}]
    (await own_log(session, block, form, isCompleted=True, answers=answers)).ok()
    (await coach.post(client_path(client, "notes"), {"content": "<p>A <b>quiet</b> person</p><p>Heron fan</p>"})).ok(
        201
    )
    (await session.post("/customer/messages", {"text": "Heron at the lake, so quiet!"})).ok(201)
    (await coach.post("/coach/programs", {"name": "Heron", "description": "Quiet feet"})).ok(201)
    await coach.create_exercise("Heron stance", tags=["quiet"])
    return client


async def test_every_type_is_found_with_its_page(coach: CoachClient, other_company: CoachClient) -> None:
    client = await write_everything(coach)
    docs = await find(coach, "HERON qui")
    assert sorted(each["type"] for each in docs) == [
        "answers", "comments", "customers", "exercises", "messages", "notes", "programs", "workouts",
    ]  # fmt: skip
    assert docs[0]["type"] == "customers"
    by_type = {each["type"]: each for each in docs}
    base, cid = coach.ctx.services.base_url, client["_id"]
    of_client = {"_id": cid, "name": "José Álvarez-Heron"}
    for kind, expected in {
        "customers": (of_client, "José Álvarez-Heron", "quiet@example.com", f"/app/customers/{cid}"),
        "workouts": (of_client, "Heron stretches", "Quiet walk", f"/app/customers/{cid}/blocks/"),
        "comments": (of_client, "Heron stretches", "Saw a heron; quiet as ever.", f"/app/customers/{cid}/blocks/"),
        "notes": (of_client, "Note", "A quiet person Heron fan", f"/app/customers/{cid}/notes#note-"),
        "messages": (
            of_client,
            "Message from José",
            "Heron at the lake, so quiet!",
            "/messages#message-",
        ),
        "answers": (of_client, "Check-in", "Quiet week, like a HERON", f"/app/customers/{cid}/responses#response-"),
        "exercises": (None, "Heron stance", "quiet", "/app/exercises/"),
        "programs": (None, "Heron", "Quiet feet", "/app/programs/"),
    }.items():
        result = by_type[kind]
        assert (result["customer"], result["title"], result["snippet"]) == expected[:3], kind
        assert result["url"].startswith(base), kind
        assert expected[3] in result["url"], kind
        assert result["isArchived"] is False
    assert (by_type["workouts"]["date"], by_type["answers"]["date"], by_type["exercises"]["date"]) == (
        MONDAY,
        MONDAY,
        None,
    )
    assert await find(other_company, "heron") == []
    assert await find(other_company, "heron", customerId=cid) == []

    only = await find(coach, "heron", types=["notes", "messages"])
    assert sorted(each["type"] for each in only) == ["messages", "notes"]
    assert "exercises" not in {each["type"] for each in await find(coach, "heron", customerId=cid)}
    assert len(await find(coach, "heron", customerId=cid)) == 6
    assert len(await find(coach, "heron", limit=3)) == 3


async def test_words_in_any_order_without_accents_the_last_one_as_a_beginning(coach: CoachClient) -> None:
    await write_everything(coach)
    for q in ("alvarez jose", "JOSE ÁLV", "josé alvarez", "  jose,  álvarez! ", "jose quiet"):
        assert await found(coach, q, types="customers") == [("customers", "José Álvarez-Heron")], q
    for q in ("alv jose", "os", "jose unknown", "!?", "🦆"):
        assert await found(coach, q, types="customers") == [], q
    assert await found(coach, "feet heron", types="programs") == [("programs", "Heron")]
    assert await found(coach, "stance quiet heron", types="exercises") == [("exercises", "Heron stance")]
    assert await found(coach, "herron stance", types="exercises") == [], "a word with a typing error does not occur"
    for wrong in ({"q": ""}, {"q": "a" * 101}, {"q": "a", "limit": 51}, {"q": "a", "types": "forms"}, {}):
        (await coach.get("/coach/search", **wrong)).refused(400)
    assert await find(coach, "a" * 100) == []
    assert await find(coach, "heron", customerId=UNKNOWN) == []


async def test_permissions_and_scope(coach: CoachClient) -> None:
    client = await write_everything(coach)
    all_of_it = coach.with_key(await employee_key(coach, "customers.view", scope="all"))
    assert {each["type"] for each in await find(all_of_it, "heron")} == {
        "customers", "workouts", "comments", "notes", "messages",
    }  # fmt: skip
    assert await find(all_of_it, "heron", types=["answers", "exercises", "programs"]) == []
    permitted = coach.with_key(
        await employee_key(coach, "customers.view", "forms.view", "exercises.view", "programs.view")
    )
    assert {each["type"] for each in await find(permitted, "heron")} == {"exercises", "programs"}, "of other clients"
    assert await find(permitted, "heron", customerId=client["_id"]) == []
    (await ask(coach.with_key(await employee_key(coach, "exercises.view")), "heron")).refused(403)

    (await coach.put("/coach/customers/archive", {"id": client["_id"]})).ok()
    archived = await find(coach, "heron")
    assert len(archived) == 8
    assert {each["type"] for each in archived if each["isArchived"]} == {
        "customers", "workouts", "comments", "notes", "messages", "answers",
    }  # fmt: skip


async def test_what_is_found_follows_changes_undo_and_erasure(checked_coach: CoachClient) -> None:
    coach = checked_coach
    client = await coach.create_customer("Ana")
    notes = client_path(client, "notes")
    note = (await coach.post(notes, {"content": "zebra"})).ok(201)
    changed = await coach.patch(f"{notes}/{note['_id']}", {"content": "giraffe"})
    assert (len(await find(coach, "zebra")), len(await find(coach, "giraffe"))) == (0, 1)
    (await coach.undo(changed)).ok()
    assert (len(await find(coach, "zebra")), len(await find(coach, "giraffe"))) == (1, 0)
    deleted = await coach.delete(f"{notes}/{note['_id']}")
    assert await find(coach, "zebra") == []
    (await coach.undo(deleted)).ok()
    assert len(await find(coach, "zebra")) == 1

    block = await block_with(coach, client, task("Ostrich"), name="Pelican day")
    (await coach.patch(path_of(block), {"name": "Toucan day"})).ok()
    assert await found(coach, "pelican") == []
    assert await found(coach, "toucan ostrich") == [("workouts", "Toucan day")]
    await add(coach, block, task("Emu"))
    assert await found(coach, "emu") == [("workouts", "Toucan day")]
    await log(coach, block, block["items"][0], isCompleted=True, comment="kiwi")
    assert await found(coach, "kiwi") == [("comments", "Toucan day")]
    await log(coach, block, block["items"][0], isCompleted=True, comment=None)
    assert await found(coach, "kiwi") == []
    (await coach.post(f"{path_of(block)}/copy", {"date": "2026-03-05"})).ok(201)
    assert [each["date"] for each in await find(coach, "toucan")] in (["2026-03-05", MONDAY], [MONDAY, "2026-03-05"])
    shifted = {"days": 7, "from": "2026-03-04"}
    (await coach.post(client_path(client, "wblocks", "shift"), shifted)).ok()
    assert sorted(each["date"] for each in await find(coach, "toucan")) == [MONDAY, "2026-03-12"]
    message = (await coach.post(client_path(client, "messages"), {"text": "flamingo"})).ok(201)
    (await coach.delete(client_path(client, "messages", message["_id"]))).ok(204)
    assert await find(coach, "flamingo") == []
    (await coach.patch(client_path(client), {"name": "Berta"})).ok()
    assert await found(coach, "ana", types="customers") == []
    assert await found(coach, "ber", types="customers") == [("customers", "Berta")]
    await require_indexed(coach.ctx)

    (await coach.delete(client_path(client))).ok(204)
    for word in ("berta", "zebra", "toucan"):
        assert await find(coach, word) == [], word
    await until(
        lambda: is_erased(coach.ctx), "what the client is found by is erased"
    )  # the application has begun already


async def is_erased(ctx: Context) -> bool:
    await worker.run_due(ctx.services, features.STEPS)
    return await stored_entries(ctx) == 0


async def test_an_imported_company_is_found(checked: OwnApplication, checked_coach: CoachClient) -> None:
    coach, other_company = checked_coach, await checked.new_coach()
    await write_everything(coach)
    entries = await transfer.export(coach)
    await transfer.import_file(other_company, transfer.make_zip(entries))
    assert await found(other_company, "quiet heron") == await found(coach, "quiet heron")
    assert len(await find(other_company, "quiet heron")) == 8
    await require_indexed(coach.ctx)
    await other_company.close()


async def test_what_was_stored_before_is_indexed_by_a_job(checked_coach: CoachClient) -> None:
    coach = checked_coach
    await write_everything(coach)
    before, complete = await found(coach, "heron"), await stored_entries(coach.ctx)
    entries = coach.ctx.services.db["searchTexts"]
    await entries.delete_many({"companyId": coach.ctx.company_id})
    assert await found(coach, "heron") == [("exercises", "Heron stance")]
    job = Job(ObjectId(), {"last": None}, 1, coach.ctx.company_id)
    again = await feature.index_batch(coach.ctx.services, job)
    assert again is not None
    assert again.progress is not None
    job = Job(ObjectId(), again.progress, 1, coach.ctx.company_id)
    assert await feature.index_batch(coach.ctx.services, job) is None
    assert (await found(coach, "heron"), await stored_entries(coach.ctx)) == (before, complete)

    await entries.update_many({"companyId": coach.ctx.company_id}, {"$set": {"words": ["other"]}})
    [result] = await check(coach.ctx.services, "search", repairing=True)
    assert [finding.count for finding in result.repaired] == [6], "a workout is found by its name and its comments"
    assert await found(coach, "heron") == before


async def test_common_words_are_searched_from_today(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and many matches are found in other ways, with the same result."""
    client = await coach.create_customer("Ana")
    for day in range(1, 10):
        await coach.schedule(client, f"2026-03-0{day}", "Common day" if day % 2 else "Common evening")
    few = [await find(coach, q, types="workouts", limit=limit) for q in ("common", "eve comm") for limit in (3, 50)]
    assert [len(each) for each in few] == [3, 9, 0, 0]
    assert few[0] == few[1][:3]
    for nearest in (2, 5_000):
        monkeypatch.setattr(searched_texts, "_FEW", 1)
        monkeypatch.setattr(searched_texts, "_NEAREST", nearest)
        assert [
            await find(coach, q, types="workouts", limit=limit) for q in ("common", "eve comm") for limit in (3, 50)
        ] == few
        assert len(await find(coach, "common evening", types="workouts")) == 4


def test_snippets_show_the_first_match() -> None:
    words = searched_texts.words_of("Más pi")
    assert words is not None
    assert searched_texts.snippet_of("short", words) == "short"
    text = "lorem " * 50 + "un poco mas de Pícaro al final " + "dolor " * 50
    snippet = searched_texts.snippet_of(text, words)
    assert snippet.startswith("… lorem lorem")
    assert "mas de Pícaro al final" in snippet
    assert snippet.endswith("dolor …")
    assert len(snippet) <= 164
    assert searched_texts.snippet_of("x" * 400, words) == "x" * 160 + " …"
    assert searched_texts.words_of("_ - ") is None
    assert searched_texts.split_words("Ærø ﬁt L’été №5") == ["aero", "fit", "l", "ete", "no5"]
    assert ObjectId.is_valid(UNKNOWN)

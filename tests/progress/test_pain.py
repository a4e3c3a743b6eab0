"""Pain in the log of an item becomes a health note: contract, sections 12 and 15."""

from __future__ import annotations

from tests.support.client import CoachClient
from tests.support.training import Json, block_with, client_path, exercise_of, log, own_log, read, task


async def notes(coach: CoachClient, customer: Json) -> list[tuple[str, str, bool, bool]]:
    """The notes on a client, newest first: content, name of the author, whether it is pinned, whether it is on health."""
    return [
        (note["content"], note["author"]["name"], note["isPinned"], note["isHealth"])
        for note in (await coach.get(client_path(customer, "notes"))).ok()
    ]


async def test_pain_in_a_clients_log_becomes_one_health_note(coach: CoachClient) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    block = await block_with(coach, ana, exercise_of(squat))
    [item], client = block["items"], await coach.as_client(ana)
    assert item["pain"] is None

    first = "Left knee <b>hurt</b>\nafter set 2"
    for _ in range(2):  # sent again, as after a lost connection
        assert (await own_log(client, block, item, pain=first)).ok()["pain"] == first
    [name] = {author for _, author, *_ in await notes(coach, ana)}
    assert name.startswith("Ana")
    note = ("Left knee &lt;b&gt;hurt&lt;/b&gt;<br>after set 2", name, False, True)
    assert await notes(coach, ana) == [note]

    (await own_log(client, block, item, pain="Both knees hurt")).ok()
    assert await notes(coach, ana) == [("Both knees hurt", name, False, True), note]
    (await own_log(client, block, item)).ok()
    assert (await read(coach, block))["items"][0]["pain"] is None
    assert len(await notes(coach, ana)) == 2, "the notes stay"


async def test_pain_that_the_client_described_is_not_changed_by_a_coach(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    [item], client = block["items"], await coach.as_client(ana)
    (await own_log(client, block, item, pain="Elbow")).ok()

    for sent in ({}, {"pain": None}, {"pain": "Elbow"}):
        assert (await log(coach, block, item, **sent)).ok()["pain"] == "Elbow"
    assert (await log(coach, block, item, pain="Wrist")).refused(409)["code"] == "CLIENT_TEXT"
    assert len(await notes(coach, ana)) == 1


async def test_pain_in_a_coachs_log_becomes_a_note_of_the_coach(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task())
    [item] = block["items"]
    logged = await log(coach, block, item, pain="Shoulder, says Ana", isCompleted=False)
    assert logged.ok()["pain"] == "Shoulder, says Ana"
    assert [(content, is_health) for content, _, _, is_health in await notes(coach, ana)] == [
        ("Shoulder, says Ana", True)
    ]
    assert (await log(coach, block, item, pain="x" * 5001)).refused(400)["errors"][0]["field"] == "pain"

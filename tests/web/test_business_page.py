"""Business: sentences about what changed, and CSV."""

from __future__ import annotations

from datetime import datetime, timedelta

from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.training import block_with, client_path, log, task
from tests.support.visitor import Visitor
from tests.web.conftest import Colleague


async def test_sentences_compare_the_last_complete_period(
    coach: CoachClient, owner_page: Visitor, colleague: Colleague
) -> None:
    (await owner_page.get("/app/reports")).ok().says(
        "0 clients trained last week", "Nothing was planned last week", "No client waited for an answer last week",
        "0 workouts are planned this week", "As many as the week before.", "Nobody joined and nobody was archived.",
    )  # fmt: skip
    today = coach.ctx.caller.today()
    monday = today - timedelta(days=today.weekday())
    ana, berta = await coach.create_customer("Ana"), await coach.create_customer("Berta")
    for client, weeks, is_done in (
        (ana, 1, True),
        (berta, 1, True),
        (ana, 2, True),
        (berta, 2, False),
        (ana, 0, False),
    ):
        block = await block_with(coach, client, task(), date=str(monday - timedelta(weeks=weeks)))
        if is_done:
            (await log(coach, block, block["items"][0], isCompleted=True)).ok()
    session = await coach.as_client(ana)
    asked = (await session.post("/customer/messages", {"text": "When?"})).ok(201)
    answer = (await coach.post(client_path(ana, "messages"), {"text": "Now"})).ok(201)
    at = datetime.fromisoformat(str(monday - timedelta(days=4)))
    for message, time in ((asked, at), (answer, at + timedelta(hours=5))):
        await coach.ctx.db["messages"].update_one({"_id": ObjectId(message["_id"])}, {"$set": {"createdAt": time}})

    page = (await owner_page.get("/app/reports")).ok()
    page.says(
        "2 clients trained last week", "1 more than the week before.",
        "100 % of the workout days were completed last week", "50 points more than the week before.",
        "2 of 2 workout days, 2 sessions.",
        "Clients got an answer within 5 hours last week",
        "1 workout is planned this week", "1 fewer than last week.", "For 2 clients; no program ends.",
    )  # fmt: skip
    assert "/app/reports/csv?report=load&groupBy=week" in page.links
    table = (await owner_page.get("/app/reports/csv?report=clients&groupBy=week")).ok()
    assert table.html.splitlines()[0] == "from,to,active,joined,archived"
    assert len(table.html.splitlines()) == 14
    (await owner_page.get("/app/reports?groupBy=month")).ok().says("last month")
    visitor = await colleague("customers.view", scope="assigned")
    (await visitor.get("/app/reports")).ok().says("0 clients trained last week")
    (await (await colleague("exercises.view")).get("/app/reports")).ok(403)

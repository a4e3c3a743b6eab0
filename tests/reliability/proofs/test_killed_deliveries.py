"""The delivery of a message whose process is killed."""

from __future__ import annotations

from datetime import datetime

import pytest

from coaching_service import features
from coaching_service.progress.conversation import service as conversation
from tests.reliability.test_assistant_calls import texts
from tests.support.client import CoachClient
from tests.support.database_proxy import Moment
from tests.support.doctor import is_numbered
from tests.support.job_worker import worker
from tests.support.mcp_client import McpHttpClient, approve, tool_proposal
from tests.support.own_application import OwnApplication
from tests.support.service_process import until

EARLIER = datetime(2020, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone


async def test_a_message_whose_delivery_is_killed_is_delivered_once(
    application: OwnApplication, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(features.STEPS, conversation.DELIVER)  # this process does not run the job
    ana = await coach.create_customer("Ana")
    async with McpHttpClient(application.server, {"X-API-Key": str(coach.key)}) as mcp:
        await approve(coach, tool_proposal(await mcp.call("send_message", customerId=ana["_id"], text="Hi"), "CONTACT"))
    db, of_company = coach.ctx.db, {"companyId": coach.ctx.company_id}
    await db["waitingMessages"].update_one(of_company, {"$set": {"deliverAt": EARLIER}})
    await db["jobs"].update_many(of_company, {"$set": {"runAfter": EARLIER}})

    async with worker(application.settings, conversation.DELIVER) as process:
        for moment in (Moment("insert", "messages", done=True), Moment("commitTransaction")):
            await process.kill_at(coach, moment)
            assert await texts(coach, ana) == [("Hi", True)]
        await process.kill_at(coach, Moment("commitTransaction", done=True))
        assert await texts(coach, ana) == [("Hi", False)]
        await process.run_to_end()

    assert await texts(coach, ana) == [("Hi", False)]
    await until(lambda: is_numbered(coach.ctx.services), "numbers of changes")
    events = (await coach.get("/coach/events", limit=500)).ok()["docs"]
    assert [each["type"] for each in events if each["type"].startswith("message.")] == ["message.created"]
    client = await coach.as_client(ana)
    assert [each["text"] for each in (await client.get("/customer/messages")).ok()["docs"]] == ["Hi"]

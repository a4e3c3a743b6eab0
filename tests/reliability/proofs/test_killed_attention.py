"""A process that is killed while it renews figures: each reason is raised once, and cleared once."""

from __future__ import annotations

from pathlib import Path

from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.progress import notes
from tests.reliability.deployment import deployed
from tests.support.database_proxy import Moment
from tests.support.drill import database_of, require_whole
from tests.support.figures import renew_figures
from tests.support.other_process import OtherProcess, running
from tests.support.service_process import until

RAISED = [("attention.raised", "health_note"), ("attention.raised", "nothing_scheduled")]
MOMENTS = {
    "before the figures are written": (Moment("update", "customers"), []),
    "before the events are written": (Moment("insert", "changes"), []),
    "before the commit": (Moment("commitTransaction"), []),
    "after the commit": (Moment("commitTransaction", done=True), RAISED),
}


async def create_client(ctx: Context) -> ObjectId:
    """A client with a health note, in one transaction."""

    async def create(tx: Context) -> ObjectId:
        client = (await batch.create_customer(tx, {"name": "Ana"}))["_id"]
        await notes.create(tx, client, {"content": "Knee", "isPinned": False, "isHealth": True})
        return client

    return await in_transaction(ctx, create)


async def events_of(services: Services, client: ObjectId) -> list[tuple[str, str]]:
    """The types and reasons of the events of attention about a client."""
    changes = await services.db["changes"].find({"customerId": client}).sort("_id").to_list(None)
    events = (event for change in changes for event in change["events"] if event["type"].startswith("attention."))
    return [(event["type"], event["data"]["reason"]) for event in events]


async def kill_at(other: OtherProcess, moment: Moment) -> None:
    """Kill the process at this moment of the transaction that stores the events of attention."""

    async def wait_for_commit() -> bool:
        other.proxy.wait_for(moment, other.kill)
        return True

    if moment.command == "commitTransaction":
        other.proxy.wait_for(Moment("insert", "changes"), wait_for_commit)
    else:
        other.proxy.wait_for(moment, other.kill)


async def test_killed_renewal_raises_each_reason_once(tmp_path: Path) -> None:
    async with deployed(tmp_path) as (deployment, services):
        company = await services.db["companies"].find_one({})
        assert company is not None
        ctx = Context(services).acting_as(await team.get_owner(services, company["_id"]))
        for name, (moment, stored) in MOMENTS.items():
            async with running(deployment.settings, deployment.key, tmp_path / name) as other:
                await kill_at(other, moment)
                client = await create_client(ctx)
                await until(lambda: other.process.poll() is not None, name, 60)
            await services.db.client.admin.command("killSessions", [moment.session])  # else it ends within a minute
            assert await events_of(services, client) == stored, name
            for _ in range(2):
                await renew_figures(ctx)
            assert await events_of(services, client) == RAISED, name
            # As if the leases of the killed process were over
            await services.db["jobs"].update_many({}, {"$set": {"lease": None, "runAfter": now()}})
        [note] = await notes.list_of_client(ctx, client)
        await notes.update(ctx, client, note["_id"], {"isHealth": False})
        async with running(deployment.settings, deployment.key, tmp_path / "clearing") as clearing:
            await until(lambda: has_cleared(services, client), "it is cleared", 60)
            await require_whole(clearing.base_url, deployment.key, **database_of(deployment.settings))
        await renew_figures(ctx)
        assert await events_of(services, client) == [*RAISED, ("attention.cleared", "health_note")]


async def has_cleared(services: Services, client: ObjectId) -> bool:
    """Whether a reason of a client has been cleared."""
    return any(event == "attention.cleared" for event, _ in await events_of(services, client))

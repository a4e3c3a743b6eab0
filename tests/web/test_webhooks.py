"""Settings → Webhooks."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.webhooks import service
from tests.support.client import CoachClient
from tests.support.visitor import HtmlPage, Visitor

PATH, URL = "/app/settings/webhooks", "https://hooks.invalid/coaching"


def secret_on(page: HtmlPage) -> str:
    return page.html.partition('id="secret">')[2].partition("<")[0]


async def test_webhook_is_created_changed_and_deleted(coach: CoachClient, owner_page: Visitor) -> None:
    page = (await owner_page.get(PATH)).says("No webhooks yet")
    fields = {"url": URL, "description": "Our CRM", "types": ["note.created", "item.logged"]}
    created = (await owner_page.submit(page, PATH, **fields)).ok().says("Secret of the new webhook", "2 types")
    assert secret_on(created).startswith("whsec_")
    again = await owner_page.submit(page, PATH, **fields)
    again.ok().says("The webhook has already been created.")
    assert secret_on(await owner_page.get(PATH)) == ""
    [webhook] = (await coach.get("/coach/webhooks")).ok()
    assert (webhook["url"], webhook["types"], webhook["isActive"]) == (URL, ["note.created", "item.logged"], True)

    here = f"{PATH}/{webhook['_id']}"
    details = (await owner_page.get(here)).says("Our CRM", "Active", "No deliveries yet")
    for query in ("limit=5", "limit=-1", "limit=x", "status=x"):
        (await owner_page.get(f"{here}?{query}")).ok().says("Our CRM")
    (await owner_page.submit(details, here, description="CRM", isActive=[], types=[])).ok().says("Changes saved.")
    changed = (await coach.get(f"/coach/webhooks/{webhook['_id']}")).ok()
    assert (changed["description"], changed["isActive"], changed["types"]) == ("CRM", False, [])
    (await owner_page.submit(details, here, description="Late")).says("has been changed since you opened the page")

    confirmation = (await owner_page.get(f"{here}/delete")).says("Delete the webhook “CRM”?")
    (await owner_page.submit(confirmation, f"{here}/delete")).says("Webhook deleted.")
    assert (await coach.get("/coach/webhooks")).ok() == []


async def test_refused_address_is_explained_at_its_field(coach: CoachClient, owner_page: Visitor) -> None:
    page = await owner_page.get(PATH)
    refused = await owner_page.submit(page, PATH, url="https://127.0.0.1/")
    refused.ok(400).says("must have the name of a public host, not a network address or localhost")
    assert (await coach.get("/coach/webhooks")).ok() == []


async def test_deliveries_are_shown_and_sent_again(coach: CoachClient, owner_page: Visitor) -> None:
    webhook = (await coach.post("/coach/webhooks", {"url": URL, "types": ["form.deleted"]})).ok(201)
    here = f"{PATH}/{webhook['_id']}"
    failed = {
        **service.new_delivery(ObjectId(webhook["_id"]), f"{ObjectId()}.0", 7, "workout.completed", None),
        "status": "failed",
        "attempts": 10,
        "error": "TIMED_OUT",
        "durationMs": 15_000,
        "lastAttemptAt": now() - timedelta(minutes=1),
        "companyId": coach.ctx.company_id,
        "createdAt": now() - timedelta(days=2),
        "updatedAt": now() - timedelta(days=2),
        "version": 0,
    }
    inserted = await coach.ctx.db["webhookDeliveries"].insert_one(failed)
    page = (await owner_page.get(here)).says("workout.completed", "Number 7", "Failed", "No response in 15 seconds")
    (await owner_page.get(f"{here}?status=succeeded")).says("No deliveries in this state")
    again = f"{here}/deliveries/{inserted.inserted_id}/redeliver"
    (await owner_page.submit(page, again)).ok().says("The event is being sent again.")
    tested = (await owner_page.submit(page, f"{here}/test")).ok().says("The test event is being sent.")
    assert "webhook.test" in tested.text


async def test_secret_is_rotated(coach: CoachClient, owner_page: Visitor) -> None:
    webhook = (await coach.post("/coach/webhooks", {"url": URL})).ok(201)
    here = f"{PATH}/{webhook['_id']}"
    page = await owner_page.get(here)
    rotated = (await owner_page.submit(page, f"{here}/rotate-secret")).ok().says("New secret")
    assert secret_on(rotated).startswith("whsec_")
    assert secret_on(rotated) != webhook["secret"]
    later = (await owner_page.get(here)).says("Messages are also signed with the previous secret until")
    assert secret_on(later) == ""


async def test_failing_and_disabled_webhooks_say_so(coach: CoachClient, owner_page: Visitor) -> None:
    webhook = (await coach.post("/coach/webhooks", {"url": URL})).ok(201)
    stored, identifier = coach.ctx.db["webhooks"], {"_id": ObjectId(webhook["_id"])}
    await stored.update_one(identifier, {"$set": {"failingSince": now()}})
    (await owner_page.get(f"{PATH}/{webhook['_id']}")).says("Failing", "Every delivery has failed since")
    await stored.update_one(identifier, {"$set": {"disabledAt": now(), "isActive": False}})
    (await owner_page.get(PATH)).says("Disabled after failures")
    (await owner_page.get(f"{PATH}/{webhook['_id']}")).says("Every delivery had failed for three days")

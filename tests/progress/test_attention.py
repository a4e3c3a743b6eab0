"""Which clients need attention (contract 11): the list, dismissals, settings and renewal."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from coaching_service.core.database.context import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.progress.attention.service import renew_due
from tests.contract.test_queries import assert_efficient, profiling
from tests.support.attention import (
    ATTENTION,
    FORM,
    count_of,
    days_ago,
    dismiss,
    docs,
    entry_of,
    names,
    reason_of,
    renew,
    set_stored,
)
from tests.support.client import UNKNOWN, CoachClient
from tests.support.results import train
from tests.support.training import Json, block_with, client_path, employee_key, log, task

FORM_RIGHTS = ("forms.view",)

# --- the list --------------------------------------------------------------------------------------------------------


async def test_list_has_the_highest_score_first(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz", groups=["Team"])
    bo, cy = await coach.create_customer("Bo"), await coach.create_customer("Cy")
    await block_with(coach, cy, task(), date=days_ago(coach, 0))
    await block_with(coach, ana, task(), date=days_ago(coach, 0))
    done = await block_with(coach, ana, task(), date=days_ago(coach, 1))
    (await log(coach, done, done["items"][0])).ok()
    note = (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)

    await renew(coach)
    page = (await coach.get(ATTENTION)).ok()

    assert (page["nextCursor"], page["hasMore"]) == (None, False)
    first, second = page["docs"]
    assert first == {
        "customer": {
            "_id": ana["_id"],
            "name": "Ana",
            "surname": "Ruiz",
            "profilePhotoUrl": None,
            "groups": ["Team"],
            "assignedTo": None,
            "lastTrainedDate": days_ago(coach, 1),
            "complianceRate7d": 100,
        },
        "score": 400,
        "reasons": [{"type": "health_note", "since": note["createdAt"], "count": 1, "quote": "Knee"}],
    }
    assert (second["customer"]["_id"], second["score"]) == (bo["_id"], 15)


async def test_filters_combine_and_reasons_are_all_listed(coach: CoachClient) -> None:
    me = str(coach.ctx.caller.id)
    ana = await coach.create_customer("Ana", groups=["Team", "Run"], assignedTo=me)
    await coach.create_customer("Bo", groups=["Run"])
    await coach.create_customer("Cy", assignedTo=me)
    (await coach.post(client_path(ana, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    assert await names(coach) == ["Ana", "Bo", "Cy"]
    [entry] = await docs(coach, reason="health_note")
    assert [each["type"] for each in entry["reasons"]] == ["health_note", "nothing_scheduled"]
    assert await names(coach, reason=["health_note", "nothing_scheduled"]) == ["Ana", "Bo", "Cy"]
    assert await names(coach, reason="erasure_requested") == []
    assert await names(coach, groups=["Team", "Run"]) == ["Ana", "Bo"]
    assert await names(coach, assignedTo=me) == ["Ana", "Cy"]
    assert await names(coach, assignedTo="none") == ["Bo"]
    assert await names(coach, assignedTo=me, reason="nothing_scheduled", groups="Run") == ["Ana"]
    assert await names(coach, assignedTo=UNKNOWN) == await names(coach, groups="None") == []
    for query, field in (({"reason": "tired"}, "reason"), ({"assignedTo": "x"}, "assignedTo"), ({"limit": 0}, "limit")):
        assert field in str((await coach.get(ATTENTION, **query)).refused(400)["message"])


async def test_reasons_of_an_area_are_hidden_from_who_may_not_see_it(coach: CoachClient) -> None:
    """Contract 11: not in the list, the score, the filter, the number, the page or what can be dismissed."""
    permissions = ("customers.view", "customers.edit")
    eli, fay = [
        coach.with_key(await employee_key(coach, *permissions, *more, scope="all")) for more in ((), FORM_RIGHTS)
    ]
    ana, bo, cy, dan = [await coach.create_customer(name, groups=["Team"]) for name in ("Ana", "Bo", "Cy", "Dan")]
    for client in (ana, bo, cy):  # nothing else is wrong with Bo
        await block_with(coach, client, FORM, date=days_ago(coach, 2))
    for client in (bo, dan):
        await block_with(coach, client, task(), date=days_ago(coach, 0))
    for client in (cy, dan):
        (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    cy_entry, dan_entry, bo_entry = ("Cy", 435), ("Dan", 400), ("Bo", 20)

    async def list_of(reader: CoachClient, **query: Any) -> list[tuple[str, int]]:
        await renew(coach)
        found, after = [], None
        while True:  # by parts of one
            page = (await reader.get(ATTENTION, limit=1, **({"after": after} if after else {}), **query)).ok()
            found += page["docs"]
            for each in page["docs"]:
                seen = {reason["type"] for reason in each["reasons"]}
                assert ("check_in_overdue" in seen) == (reader is not eli and each["customer"]["_id"] != dan["_id"])
            after = page["nextCursor"]
            if not page["hasMore"]:
                return [(each["customer"]["name"], each["score"]) for each in found]

    assert await list_of(fay) == await list_of(coach) == [cy_entry, dan_entry, ("Ana", 35), bo_entry]
    assert await list_of(eli) == await list_of(eli, groups="Team") == [("Cy", 415), dan_entry, ("Ana", 15)]
    assert await list_of(fay, reason="check_in_overdue") == [cy_entry, ("Ana", 35), bo_entry]
    assert await list_of(eli, reason="check_in_overdue") == []
    assert await list_of(eli, reason=["check_in_overdue", "nothing_scheduled"]) == [("Cy", 415), ("Ana", 15)]
    assert await list_of(eli, inactiveDays=1) == []
    long_ago = {"$set": {"createdAt": datetime(2020, 1, 1, tzinfo=UTC)}}
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(bo["_id"])}, long_ago)
    assert await list_of(eli, inactiveDays=1) == [("Bo", 0)]
    assert await list_of(fay, inactiveDays=1) == [("Bo", 20)]
    refused = await eli.put(f"{ATTENTION}/{ana['_id']}", {"reason": "check_in_overdue", "until": None})
    assert refused.refused(409)["code"] == "REASON_NOT_PRESENT"
    left = await dismiss(eli, ana, "nothing_scheduled")
    assert (left["score"], left["reasons"]) == (0, [])
    assert await list_of(eli) == [("Cy", 415), dan_entry]
    assert await list_of(fay) == [cy_entry, dan_entry, ("Ana", 20), bo_entry]


async def test_walking_the_parts_meets_every_client_once(coach: CoachClient) -> None:
    for number in range(7):
        client = await coach.create_customer(f"Client {number}", groups=["Team"])
        for _ in range(number % 3):
            (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    for query in ({}, {"reason": ["nothing_scheduled", "health_note"]}, {"groups": "Team"}, {"assignedTo": "none"}):
        expected = await names(coach, **query)
        assert len(expected) == 7
        for limit in (1, 3):
            walked, page = [], (await coach.get(ATTENTION, limit=limit, **query)).ok()
            while page["hasMore"]:
                walked += page["docs"]
                page = (await coach.get(ATTENTION, limit=limit, after=page["nextCursor"], **query)).ok()
            assert [each["customer"]["name"] for each in [*walked, *page["docs"]]] == expected
    cursor = (await coach.get(ATTENTION, limit=1)).ok()["nextCursor"]
    (await coach.get(ATTENTION, limit=1, after=cursor, reason="inactive")).refused(400, "after")


async def test_archived_erased_and_unassigned_clients_are_left_out(
    coach: CoachClient, other_company: CoachClient
) -> None:
    eli = coach.with_key(await employee_key(coach, "customers.create", "customers.view", "customers.edit"))
    ana, bo, cy = [await client.create_customer(name) for client, name in ((coach, "Ana"), (eli, "Bo"), (coach, "Cy"))]
    assert await names(coach) == ["Ana", "Bo", "Cy"]
    (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
    (await coach.delete(client_path(cy))).ok(204)
    dan = await coach.create_customer("Dan")
    assert await names(coach) == ["Bo", "Dan"]
    assert await names(eli) == ["Bo"]
    assert await names(eli, reason="nothing_scheduled") == ["Bo"]
    assert await names(eli, assignedTo="none") == await names(other_company) == []
    await dismiss(eli, bo, "nothing_scheduled")
    body = {"reason": "nothing_scheduled"}
    (await eli.put(f"{ATTENTION}/{dan['_id']}", body)).refused(403)
    (await other_company.put(f"{ATTENTION}/{dan['_id']}", body)).refused(404)
    (await coach.put(f"{ATTENTION}/{cy['_id']}", body)).refused(404)
    (await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})).ok()
    assert await names(coach) == ["Ana", "Dan"]


async def test_lists_examine_few_keys(coach: CoachClient) -> None:
    me = str(coach.ctx.caller.id)
    fields = [
        {"groups": ["Team"] if number % 9 == 0 else [], "assignedTo": me if number % 9 == 1 else None}
        for number in range(63)
    ]
    new = [{"name": f"Client {number}", **each} for number, each in enumerate(fields)]
    created = (await coach.post("/coach/customers/batch", {"customers": new})).ok()["results"]
    for client in created[2::9]:
        (await coach.post(client_path(client, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await renew(coach)
    async with profiling(coach) as profile:
        for query in ({}, {"reason": ["health_note", "inactive"]}, {"groups": "Team"}, {"assignedTo": me}):
            page = (await coach.get(ATTENTION, limit=5, **query)).ok()
            assert (await coach.get(ATTENTION, limit=5, after=page["nextCursor"], **query)).ok()["docs"]
        entries = await profile()
    assert_efficient(entries)


# --- dismissing ------------------------------------------------------------------------------------------------------


async def test_dismissed_reason_comes_back_when_something_new_happens(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    path = client_path(ana, "notes")
    knee = (await coach.post(path, {"content": "Knee pain", "isHealth": True})).ok(201)
    entry = await dismiss(coach, ana, "health_note")
    assert [each["type"] for each in entry["reasons"]] == ["nothing_scheduled"], "of the reasons that apply now"
    assert (entry["customer"]["_id"], entry["score"]) == (ana["_id"], 15)
    assert await entry_of(coach, ana) == entry
    back = (await coach.post(path, {"content": "Back pain", "isHealth": True})).ok(201)
    reason = {"type": "health_note", "since": back["createdAt"], "count": 2, "quote": "Back pain"}
    assert await reason_of(coach, ana, "health_note") == reason
    await dismiss(coach, ana, "health_note")
    (await coach.delete(f"{path}/{back['_id']}")).ok(204)
    assert await count_of(coach, ana, "health_note") == 0, "the older note had been dismissed as well"
    (await coach.patch(f"{path}/{knee['_id']}", {"isHealth": False})).ok()
    (await coach.put(f"{ATTENTION}/{ana['_id']}", {"reason": "health_note"})).refused(409, "this reason")


async def test_dismissed_reason_comes_back_on_the_date(coach: CoachClient) -> None:
    """The date is local to the client; the renewal at midnight brings the reason back."""
    zone = "Pacific/Kiritimati"
    ana = await coach.create_customer(timezone=zone)
    assert (await dismiss(coach, ana, "nothing_scheduled", days_ago(coach, -1, zone)))["reasons"] == []
    assert await names(coach) == []
    dismissals = coach.ctx.db["attentionDismissals"]
    await dismissals.update_one({"customerId": ObjectId(ana["_id"])}, {"$set": {"until": days_ago(coach, 0, zone)}})
    assert await names(coach) == [], "once a local day"
    await set_stored(coach, ana)
    assert await names(coach) == ["Ana"]
    await dismiss(coach, ana, "nothing_scheduled", days_ago(coach, -1, zone))
    ended = await dismiss(coach, ana, "nothing_scheduled", days_ago(coach, 0, zone))
    assert [each["type"] for each in ended["reasons"]] == ["nothing_scheduled"], "a past date ends a dismissal"


async def test_dismissed_missed_workouts_come_back_with_the_next_run(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    blocks = {days: await block_with(coach, ana, task(), date=days_ago(coach, days)) for days in (5, 4, 3)}
    await dismiss(coach, ana, "missed_workout")
    assert await count_of(coach, ana, "missed_workout") == 0
    await block_with(coach, ana, task(), date=days_ago(coach, 2))
    assert await count_of(coach, ana, "missed_workout") == 0, "still the same run, as during a holiday"
    (await log(coach, blocks[3], blocks[3]["items"][0])).ok()
    assert await count_of(coach, ana, "missed_workout") == 3


async def test_dismissal_can_be_undone_and_is_in_the_history(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {"reason": "nothing_scheduled", "until": None}
    reply = await coach.put(f"{ATTENTION}/{ana['_id']}", body)
    change_id = reply.headers["X-Change-Id"]
    assert await names(coach) == []
    change = (await coach.get(f"/coach/changes/{change_id}")).ok()
    assert (change["operation"], change["customerId"]) == ("dismissAttention", ana["_id"])
    (await coach.post(f"/coach/changes/{change_id}/undo")).ok()
    assert await names(coach) == ["Ana"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "reason"), ({"reason": "tired"}, "reason"), ({"reason": "inactive", "until": "soon"}, "until")],
)
async def test_bad_dismissal_names_the_field(coach: CoachClient, body: Json, field: str) -> None:
    ana = await coach.create_customer()
    (await coach.put(f"{ATTENTION}/{ana['_id']}", body)).refused(400, field)


# --- settings and renewal --------------------------------------------------------------------------------------------


async def test_settings_renew_all_clients_in_the_background(coach: CoachClient) -> None:
    """Contract 11: `attention {inactiveDays (7), complianceBelow (60), horizonDays (3)}`."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100), date=days_ago(coach, 8))
    half = await block_with(coach, ana, task(), date=days_ago(coach, 9))
    await block_with(coach, ana, task(), date=days_ago(coach, -5))
    reasons = {each["type"] for each in (await entry_of(coach, ana))["reasons"]}
    assert reasons == {"inactive", "low_compliance", "nothing_scheduled"}
    account = (await coach.get("/coach/account")).ok()
    assert account["attention"] == {"inactiveDays": 7, "complianceBelow": 60, "horizonDays": 3}

    changed = (await coach.patch("/coach/account", {"attention": {"inactiveDays": 9}})).ok()
    assert changed["attention"] == {"inactiveDays": 9, "complianceBelow": 60, "horizonDays": 3}
    assert {each["type"] for each in (await entry_of(coach, ana))["reasons"]} == reasons - {"inactive"}
    (await coach.patch("/coach/account", {"attention": {"complianceBelow": 50, "horizonDays": 5}})).ok()
    assert await names(coach) == []
    assert half["items"]
    for bad in ({"inactiveDays": 0}, {"complianceBelow": 101}, {"horizonDays": -1}, {"inactiveDays": "7"}):
        (await coach.patch("/coach/account", {"attention": bad})).refused(400, next(iter(bad)))


async def test_time_zones_move_the_day(coach: CoachClient) -> None:
    """A change of the time zone, of the client or the company, renews the reasons at once."""
    ana = await coach.create_customer(timezone="Pacific/Pago_Pago")
    await block_with(coach, ana, task(), date=days_ago(coach, -3, "Pacific/Kiritimati"))
    scheduled = 0 if days_ago(coach, 0, "Pacific/Pago_Pago") == days_ago(coach, 0, "Pacific/Kiritimati") else 1
    assert await count_of(coach, ana, "nothing_scheduled") == scheduled
    (await coach.patch(client_path(ana), {"timezone": "Pacific/Kiritimati"})).ok()
    assert await count_of(coach, ana, "nothing_scheduled") == 0
    (await coach.patch(client_path(ana), {"timezone": None})).ok()
    (await coach.patch("/coach/account", {"timezone": "Pacific/Pago_Pago"})).ok()
    assert await count_of(coach, ana, "nothing_scheduled") == scheduled


async def test_client_that_needs_nobody_is_not_listed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    block = await block_with(coach, ana, task(), date=days_ago(coach, 0))
    (await log(coach, block, block["items"][0])).ok()
    assert await docs(coach) == []


async def test_many_clients_are_renewed_with_a_fixed_number_of_queries(coach: CoachClient) -> None:
    async def count_queries(clients: int) -> int:
        """The number of queries of the renewal of so many clients; a transaction tells them from those of others."""
        created = [await coach.create_customer(f"Client {number}") for number in range(clients)]
        for customer in created:
            (await coach.post(client_path(customer, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
        ids = [ObjectId(customer["_id"]) for customer in created]
        due: Any = await coach.ctx.db["customers"].find({"_id": {"$in": ids}}).to_list(None)
        async with profiling(coach) as profile:
            await in_transaction(coach.ctx, lambda tx: renew_due(tx, due))
            entries = await profile()
        transactions = Counter(
            (entry["command"]["lsid"]["id"], entry["command"]["txnNumber"])
            for entry in entries
            if entry["op"] in ("query", "command") and "txnNumber" in entry["command"]
        )
        return max(transactions.values())

    assert 5 < await count_queries(1) == await count_queries(8) < 18

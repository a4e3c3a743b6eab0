"""Periods in which a client cannot train as planned (contract 20): what coaches and clients enter."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest

from coaching_service.core.dates import add_years
from coaching_service.core.ids import ObjectId
from coaching_service.people import availability
from tests.contract.test_queries import assert_efficient, profiling
from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import Json, client_path, employee_key

OWN = "/customer/availability"
FLU = {"kind": "ill", "from": "2026-03-02", "until": "2026-03-08", "note": "Flu."}


def ahead(years: int, days: int) -> str:
    """The date that is so many years and days from today."""
    return str(add_years(datetime.now(UTC).date(), years) + timedelta(days=days))


def path(customer: Json, *parts: str) -> str:
    return client_path(customer, "availability", *parts)


async def enter(coach: CoachClient, customer: Json, first: str, until: str | None, kind: str = "ill") -> Json:
    period: Json = (await coach.post(path(customer), {"kind": kind, "from": first, "until": until})).ok(201)
    return period


async def test_coach_enters_changes_and_deletes_a_period(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    period = (await coach.post(path(ana), FLU)).ok(201)
    assert period == FLU | {
        "_id": period["_id"],
        "customerId": ana["_id"],
        "createdBy": None,
        "createdAt": period["createdAt"],
        "updatedAt": period["createdAt"],
        "version": 0,
    }
    later = await enter(coach, ana, "2026-05-01", None, "injured")
    earlier = await enter(coach, ana, "2026-02-02", "2026-02-02", "limited")
    assert (later["until"], later["note"]) == (None, None)
    assert (await coach.get(path(ana))).ok() == [earlier, period, later]

    changed = (await coach.patch(path(ana, period["_id"]), {"until": "2026-03-05", "version": 0})).ok()
    assert (changed["until"], changed["note"], changed["version"]) == ("2026-03-05", "Flu.", 1)
    (await coach.patch(path(ana, period["_id"]), {"note": "x", "version": 0})).refused(409)
    (await coach.delete(path(ana, later["_id"]))).ok(204)
    assert (await coach.get(path(ana))).ok() == [earlier, changed]
    assert (await coach.delete(path(ana, later["_id"]))).refused(404)["code"] == "AVAILABILITY_NOT_FOUND"
    (await coach.patch(path(ana, UNKNOWN), {"note": "x"})).refused(404)


@pytest.mark.parametrize(
    ("first", "last", "field"),
    [
        ("0001-01-01", None, "from"),  # what some programs send for "no date"
        ("0001-01-01", "2026-03-08", "from"),
        ("2026-03-02", "9999-12-31", "until"),
        ("2026-03-02", ahead(5, 1), "until"),
        (ahead(5, 1), None, "from"),
        ("2010-03-02", "2015-03-03", "until"),
        (ahead(-5, -1), None, "from"),
    ],
)
async def test_a_period_is_within_five_years(coach: CoachClient, first: str, last: str | None, field: str) -> None:
    """Contract 20: at most five years from today, and at most five years long; an open one until today."""
    ana = await coach.create_customer()
    [error] = (await coach.post(path(ana), FLU | {"from": first, "until": last})).refused(400)["errors"]
    assert (error["field"], error["code"]) == (field, "DATE_OUT_OF_RANGE")
    own = await (await coach.as_client(ana)).post(OWN, FLU | {"from": first, "until": last})
    assert own.refused(400)["errors"][0]["code"] == "DATE_OUT_OF_RANGE"
    await enter(coach, ana, "2010-03-02", "2015-03-02")
    period = await enter(coach, ana, ahead(0, 0), ahead(5, 0))
    [error] = (await coach.patch(path(ana, period["_id"]), {"from": ahead(0, -2)})).refused(400)["errors"]
    assert (error["field"], error["code"]) == ("until", "DATE_OUT_OF_RANGE")


async def test_a_stored_period_beyond_the_bounds_can_be_corrected_and_deleted(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    period = await enter(coach, ana, "2026-03-02", None)
    where = {"_id": ObjectId(period["_id"])}
    await coach.ctx.db["availability"].update_one(where, {"$set": {"from": "0001-01-01", "until": "9999-12-31"}})
    assert (await coach.patch(path(ana, period["_id"]), {"note": "x"})).ok()["note"] == "x"
    (await coach.patch(path(ana, period["_id"]), {"from": "2026-03-02"})).refused(400, "until")
    assert (await coach.patch(path(ana, period["_id"]), {"from": "2026-03-02", "until": None})).ok()["until"] is None
    (await coach.delete(path(ana, period["_id"]))).ok(204)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "tired"}, "kind"),
        ({"from": "soon"}, "from"),
        ({"from": None}, "from"),
        ({"until": "2026-03-01"}, "until"),
        ({"note": "x" * 501}, "note"),
    ],
)
async def test_a_period_is_validated(coach: CoachClient, change: Json, field: str) -> None:
    ana = await coach.create_customer()
    errors = (await coach.post(path(ana), FLU | change)).refused(400)["errors"]
    assert [each["field"] for each in errors] == [field]
    period = (await coach.post(path(ana), FLU)).ok(201)
    errors = (await coach.patch(path(ana, period["_id"]), change)).refused(400)["errors"]
    assert [each["field"] for each in errors] == [field]
    assert (await coach.get(path(ana))).ok() == [period]


@pytest.mark.parametrize(
    ("first", "until", "overlaps"),
    [
        ("2026-03-01", "2026-03-02", True),
        ("2026-03-08", "2026-03-08", True),
        ("2026-03-03", "2026-03-04", True),
        ("2026-02-01", None, True),
        ("2026-03-01", "2026-03-01", False),
        ("2026-03-09", None, False),
    ],
)
async def test_periods_of_a_client_do_not_overlap(
    coach: CoachClient, first: str, until: str | None, *, overlaps: bool
) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await enter(coach, ana, "2026-03-02", "2026-03-08", "limited")
    reply = await coach.post(path(ana), {"kind": "away", "from": first, "until": until})
    if overlaps:
        assert reply.refused(409)["code"] == "AVAILABILITY_OVERLAP"
    else:
        reply.ok(201)
    await enter(coach, bo, first, until)
    other = await enter(coach, ana, "2025-01-01", "2025-01-02")
    moved = await coach.patch(path(ana, other["_id"]), {"from": first, "until": until})
    assert moved.status == (409 if overlaps or reply.status == 201 else 200)
    (await coach.patch(path(ana, other["_id"]), {"until": "2025-01-01"})).ok()


async def test_of_concurrent_periods_with_the_same_days_one_is_stored(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    replies = await asyncio.gather(*(coach.post(path(ana), FLU) for _ in range(5)))
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409, 409]
    assert len((await coach.get(path(ana))).ok()) == 1


async def test_client_changes_only_own_entries(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    client = await coach.as_client(ana)
    of_coach, of_bo = await enter(coach, ana, "2026-03-02", "2026-03-08"), await enter(coach, bo, "2026-03-02", None)
    own = (await client.post(OWN, {"kind": "away", "from": "2026-04-01"})).ok(201)
    assert (own["createdBy"], own["customerId"], own["until"], own["note"]) == ("client", ana["_id"], None, None)
    assert (await client.get(OWN)).ok() == (await coach.get(path(ana))).ok() == [of_coach, own]

    for reply in (
        await client.patch(f"{OWN}/{of_coach['_id']}", {"note": "x"}),
        await client.delete(f"{OWN}/{of_coach['_id']}"),
    ):
        assert reply.refused(403)["code"] == "NOT_THE_AUTHOR"
    (await client.delete(f"{OWN}/{of_bo['_id']}")).refused(404)
    assert (await client.post(OWN, FLU)).refused(409)["code"] == "AVAILABILITY_OVERLAP"
    changed = (await client.patch(f"{OWN}/{own['_id']}", {"until": "2026-04-02"})).ok()
    again = (await coach.patch(path(ana, own["_id"]), {"note": "Seen."})).ok()
    assert (changed["until"], again["note"], again["createdBy"]) == ("2026-04-02", "Seen.", "client")
    (await client.delete(f"{OWN}/{own['_id']}")).ok(204)


async def test_what_a_client_enters_is_an_action_of_the_client(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await enter(coach, ana, "2026-03-02", "2026-03-08")
    assert (await coach.get(client_path(ana))).ok()["lastActivityDate"] is None
    (await (await coach.as_client(ana)).post(OWN, {"kind": "away", "from": "2026-04-01"})).ok(201)
    assert (await coach.get(client_path(ana))).ok()["lastActivityDate"] is not None


async def test_only_clients_in_scope(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    employee = coach.with_key(await employee_key(coach, "customers.view", "customers.edit"))
    assert (await employee.get(path(ana))).refused(403)["code"] == "CUSTOMER_OUT_OF_SCOPE"
    assert (await employee.post(path(ana), FLU)).refused(403)["code"] == "CUSTOMER_OUT_OF_SCOPE"


async def test_undo(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    created = await coach.post(path(ana), FLU)
    (await coach.undo(created)).ok()
    assert (await coach.get(path(ana))).ok() == []
    period = await enter(coach, ana, "2026-03-02", "2026-03-08")
    deleted = await coach.delete(path(ana, period["_id"]))
    await enter(coach, ana, "2026-03-08", None)
    refused = await coach.undo(deleted)
    assert refused.refused(409)["code"] == "AVAILABILITY_OVERLAP"


async def test_what_other_features_ask(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    period = await enter(coach, ana, "2026-03-02", "2026-03-08")
    await enter(coach, bo, "2026-03-02", None, "limited")
    ids = [ObjectId(each["_id"]) for each in (ana, bo)]
    absences = await availability.get_absences(coach.ctx, ids, "2026-03-08", "2026-03-10")
    assert [["2026-03-08" in absences[each], "2026-03-09" in absences[each]] for each in ids] == [
        [True, False],
        [False, False],
    ]
    assert {
        client: len(some)
        for client, some in (await availability.get_periods(coach.ctx, ids, "2026-03-09", None)).items()
    } == {
        ids[0]: 0,
        ids[1]: 1,
    }
    async with profiling(coach) as entries:
        assert (await coach.get(path(ana))).ok() == [period]
        await availability.get_absences(coach.ctx, ids, "2026-03-08", None)
        await availability.find_present_or_next(coach.ctx, ids[0], date(2026, 3, 2))
        assert_efficient(await entries())

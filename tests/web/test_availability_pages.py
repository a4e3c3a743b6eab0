"""When clients are away or ill: the pages of coaches and of clients."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coaching_service.web.formatting import format_date
from tests.support.client import CoachClient
from tests.support.training import block_with, client_path, task
from tests.support.visitor import Visitor
from tests.web.conftest import ClientPage

Json = dict[str, Any]


pytestmark = pytest.mark.usefixtures("wednesday")


async def periods_of(coach: CoachClient, customer: Json) -> list[tuple[str, str, str | None, str | None]]:
    listed = (await coach.get(client_path(customer, "availability"))).ok()
    return [(each["kind"], each["from"], each["until"], each["createdBy"]) for each in listed]


async def test_a_coach_enters_changes_and_deletes_a_period(coach: CoachClient, owner_page: Visitor) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    last = today + timedelta(days=6)
    await block_with(coach, ana, task(), date=str(today), name="Legs")
    base = f"/app/customers/{ana['_id']}"
    week = (await owner_page.get(f"{base}?week={today}")).ok().says("Away or ill")

    saved = await owner_page.submit(week, f"{base}/availability", kind="ill", length="7", note="Flu")
    saved.ok().says(f"Ill until {format_date(last)}. Nothing in it counts as missed.", "Resume or change", ": Flu")
    assert await periods_of(coach, ana) == [("ill", str(today), str(last), None)]
    assert saved.html.count('class="band"') == 5, "Wednesday to Sunday"
    month = (await owner_page.get(f"{base}/month?month={today:%Y-%m}")).ok()
    assert 'class="band"' in month.html
    for path in (f"{base}/notes", f"{base}/progress"):
        (await owner_page.get(path)).ok().says(f"Ill until {format_date(last)}")
    (await owner_page.get("/app/customers")).ok().says(f"Ana Ill until {format_date(last)}")

    again = await owner_page.submit(week, f"{base}/availability", kind="away", length="1")
    again.ok(409).says("periods must not overlap")
    listed = (await owner_page.get(f"{base}/availability")).ok().says("Flu")
    [period] = (await coach.get(client_path(ana, "availability"))).ok()
    path = f"{base}/availability/{period['_id']}"
    changed = await owner_page.submit(listed, path, kind="injured", until="")
    changed.ok().says("Injured, no end yet")
    assert await periods_of(coach, ana) == [("injured", str(today), None, None)]
    wrong = await owner_page.submit(changed, path, until=str(today - timedelta(days=1)), note="Knee")
    sent = wrong.ok(400).form(path).controls
    assert (sent["until"]["value"], sent["note"]["value"]) == (str(today - timedelta(days=1)), "Knee")
    (await owner_page.submit(changed, f"{path}/delete")).ok().says("Deleted.", "Never away or ill")
    assert await periods_of(coach, ana) == []


async def test_a_last_day_counts_more_than_a_length(coach: CoachClient, owner_page: Visitor) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    first, last = today + timedelta(days=10), today + timedelta(days=12)
    base = f"/app/customers/{ana['_id']}"
    week = await owner_page.get(base)
    sent = {"kind": "limited", "from": str(first), "length": "7"}
    (await owner_page.submit(week, f"{base}/availability", **sent, until=str(last))).ok().says("Limited from")
    opened = {"kind": "away", "from": str(last + timedelta(days=1)), "length": "open"}
    (await owner_page.submit(week, f"{base}/availability", **opened)).ok()
    assert await periods_of(coach, ana) == [
        ("limited", str(first), str(last), None),
        ("away", str(last + timedelta(days=1)), None, None),
    ]
    refused = await owner_page.submit(week, f"{base}/availability", kind="lazy", length="7")
    refused.ok(400)


async def test_a_client_says_that_they_are_ill(
    coach: CoachClient, client_page: ClientPage, owner_page: Visitor
) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    last, base = format_date(today + timedelta(days=6)), f"/app/customers/{ana['_id']}"
    await block_with(coach, ana, task(), date=str(today), name="Legs")
    page = await client_page(coach, ana)
    start = (await page.get("/train")).ok().says("I am away or ill")

    saved = await page.submit(start, "/train/availability", kind="ill", length="7", note="Flu")
    saved.ok().says(f"Ill until {last}. Nothing in it counts as missed. Your coach sees it.", "Ill until", ": Flu")
    assert await periods_of(coach, ana) == [("ill", str(today), str(today + timedelta(days=6)), "client")]
    week = (await page.get("/train/calendar")).ok()
    assert week.html.count('class="band"') == 5, "Wednesday to Sunday"
    assert "days-band" in (await page.get(f"/train/calendar?month={today:%Y-%m}")).ok().html
    (await owner_page.get(f"{base}/availability")).ok().says("entered by Ana")

    own = (await page.get("/train/availability")).ok()
    path = next(link for link in own.links if link.startswith("/train/availability/"))
    shown = (await page.get(path)).ok()
    changed = await page.submit(shown, path, kind="away", until=str(today))
    changed.ok().says("Saved.", f"Away until {format_date(today)}")
    (await page.submit(await page.get(path), f"{path}/delete")).ok().says("Deleted.")
    assert await periods_of(coach, ana) == []


async def test_a_client_does_not_change_what_a_coach_has_entered(coach: CoachClient, client_page: ClientPage) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    entered = {"kind": "injured", "from": str(today)}
    period = (await coach.post(client_path(ana, "availability"), entered)).ok(201)
    page = await client_page(coach, ana)
    listed = (await page.get("/train/availability")).ok().says("Injured, no end yet", "Entered by your coach")
    assert f"/train/availability/{period['_id']}" not in listed.links
    (await page.get(f"/train/availability/{period['_id']}")).ok().says("Entered by your coach")


async def test_a_return_is_previewed_and_done(coach: CoachClient, owner_page: Visitor) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    start = today - timedelta(days=3)
    await block_with(coach, ana, task(), date=str(today - timedelta(days=1)), name="Legs")
    await block_with(coach, ana, task(), date=str(today + timedelta(days=2)), name="Push")
    (await coach.post(client_path(ana, "availability"), {"kind": "ill", "from": str(start)})).ok(201)
    base = f"/app/customers/{ana['_id']}"
    page = (await owner_page.get(f"{base}/availability")).ok().says("Resume training", "First day back")
    moved = f"Trains again from {format_date(today)}: 2 workouts moved by 7 days"  # its weekday stays

    form = page.form(f"{base}/availability/resume")
    form.action += "/preview"
    preview = await owner_page.submit(page, f"{base}/availability/resume/preview")
    row = f"{format_date(today - timedelta(days=1))} → {format_date(today + timedelta(days=6))}: Legs"
    preview.ok().says(f"Preview: {moved}", row)
    exact = await owner_page.submit(page, f"{base}/availability/resume/preview", mode="shift")
    exact.ok().says("2 workouts moved by 3 days", f"→ {format_date(today + timedelta(days=2))}: Legs")
    assert await periods_of(coach, ana) == [("ill", str(start), None, None)], "nothing was changed"
    form.action = f"{base}/availability/resume"
    done = await owner_page.submit(page, f"{base}/availability/resume")
    done.ok().says(f"{moved}.")
    assert await periods_of(coach, ana) == [("ill", str(start), str(today - timedelta(days=1)), None)]
    listed = await coach.calendar(ana, str(start), str(today + timedelta(days=9)))
    assert [(each["name"], each["date"]) for each in listed] == [
        ("Legs", str(today + timedelta(days=6))),
        ("Push", str(today + timedelta(days=9))),
    ]
    assert "Resume training" not in (await owner_page.get(f"{base}/availability")).ok().text


async def test_a_return_removes_what_was_planned(coach: CoachClient, owner_page: Visitor) -> None:
    ana, today = await coach.create_customer("Ana"), coach.ctx.caller.today()
    yesterday = str(today - timedelta(days=1))
    await block_with(coach, ana, task(), date=yesterday, name="Legs")
    (await coach.post(client_path(ana, "availability"), {"kind": "away", "from": yesterday})).ok(201)
    path = f"/app/customers/{ana['_id']}/availability"
    dropped = await owner_page.submit(await owner_page.get(path), f"{path}/resume", mode="drop")
    dropped.ok().says(f"Trains again from {format_date(today)}: 1 workout removed.")

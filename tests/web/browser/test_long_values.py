"""Long names at every width: nothing overflows or is cut off."""

from __future__ import annotations

import pytest

from tests.support import training
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.web.browser.conftest import OpenPage, picture, sign_in

_HIDDEN = """() => [...document.querySelectorAll("main td, main th, main article, main h4, main button, main input, main .tag, main label, main li")]
  .filter((each) => each.checkVisibility() && !each.closest(".hidden-text, thead"))
  .filter((each) => {
    const box = each.getBoundingClientRect(), room = document.documentElement.clientWidth;
    return box.right > room + 1 || box.left < -1 || each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0
      && !each.matches("input");
  })
  .map((each) => each.outerHTML.slice(0, 120))"""
_SCROLLS = """() => [...document.querySelectorAll("main .table, main .scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.className)"""


@pytest.mark.parametrize("width", [360, 768, 1000, 1280])
async def test_long_names_do_not_overflow(open_page: OpenPage, coach: CoachClient, width: int) -> None:
    unbroken, group = "x" * 200, "Endurance and strength for beginners on Tuesdays"
    ana = await coach.create_customer(unbroken, groups=["y" * 100, group], assignedTo=str(coach.ctx.caller.id))
    await coach.create_customer("Maximiliana Bartholomäa", surname="von Hohenstein-Schwarzenberg", groups=[group])
    (await (await coach.interactive()).post("/coach/api-keys", {"name": unbroken})).ok(201)
    program = (await coach.post("/coach/programs", {"name": unbroken, "tags": ["z" * 100]})).ok(201)
    plan = f"/coach/programs/{program['_id']}/wblocks"
    block = (await coach.post(plan, {"name": unbroken, "day": 1})).ok(201)
    await training.add(coach, block, training.task(unbroken))
    planned = await coach.schedule(ana, name=unbroken)
    await training.add(coach, planned, training.task(unbroken))
    await coach.schedule(ana, TUESDAY, "Ganzkörpertraining")
    body = await training.metric_set(coach, unbroken, "Waist", name=unbroken)
    page = await open_page(viewport={"width": width, "height": 800})
    await sign_in(page, coach)
    for path in (
        "/app/customers",
        f"/app/customers/bulk?ids={ana['_id']}&action=groups-add",
        "/app/customers/new",
        "/app/settings/api-keys",
        "/app/settings/team",
        "/app/settings/metric-sets",
        f"/app/settings/metric-sets/{body['_id']}",
        f"/app/settings/metric-sets/{body['_id']}/delete",
        f"/app/customers/{ana['_id']}?week={MONDAY}",
        f"/app/customers/{ana['_id']}/blocks/{planned['_id']}",
        "/app/programs",
        f"/app/programs/{program['_id']}",
        f"/app/programs/{program['_id']}/edit",
        f"/app/programs/{program['_id']}/delete",
        f"/app/programs/{program['_id']}/blocks/{block['_id']}",
    ):
        await page.goto(path)
        for summary in reversed(await page.locator("main details:not([open]) > summary").all()):
            await summary.click()
        await picture(page, f"long-{width}", path.partition("?")[0].strip("/").replace("/", "-"))
        assert await page.evaluate(_HIDDEN) == [], path
        assert await page.evaluate(_SCROLLS) == [], path

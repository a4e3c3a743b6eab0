"""Long names at every width: nothing overflows or is cut off."""

from __future__ import annotations

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


WIDTHS = (360, 768, 1000, 1280)


async def test_long_names_do_not_overflow(open_page: OpenPage, coach: CoachClient) -> None:
    """Each page is opened once, at a width in turn, and then resized."""
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
    page = await open_page(reduced_motion="reduce")
    await sign_in(page, coach)
    for number, path in enumerate(
        (
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
        )
    ):
        first = number % len(WIDTHS)
        await page.set_viewport_size({"width": WIDTHS[first], "height": 800})
        await page.goto(path)
        for summary in reversed(await page.locator("main details:not([open]) > summary").all()):
            if await summary.is_visible():  # not those within another one
                await summary.click()
        for width in WIDTHS[first:] + WIDTHS[:first]:
            await page.set_viewport_size({"width": width, "height": 800})
            await picture(page, f"long-{width}", path.partition("?")[0].strip("/").replace("/", "-"))
            assert await page.evaluate(_HIDDEN) == [], (path, width)
            assert await page.evaluate(_SCROLLS) == [], (path, width)


async def test_many_groups_leave_room_for_the_name_of_a_client(open_page: OpenPage, coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Costa", groups=[f"Group {number}" for number in range(50)])
    page = await open_page()
    await sign_in(page, coach)
    await page.goto(f"/app/customers/{ana['_id']}/availability")
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        heading = page.get_by_role("heading", name="Ana Costa")
        assert await heading.evaluate("(name) => name.clientHeight / parseFloat(getComputedStyle(name).fontSize)") < 3

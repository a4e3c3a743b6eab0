"""Converting loads in the settings of the web application."""

from __future__ import annotations

from coaching_service import features
from coaching_service.core.jobs import worker
from coaching_service.integrations.load_unit import service as load_unit
from tests.support.client import CoachClient
from tests.support.results import train
from tests.support.service_process import until
from tests.support.visitor import HtmlPage, Visitor
from tests.web.conftest import Colleague

PAGE = "/app/settings/load-unit"


async def finished(coach: CoachClient, owner_page: Visitor, words: str) -> HtmlPage:
    """Run the job, and return the page that says so."""

    async def is_done() -> bool:
        await worker.run_due(coach.ctx.services, {load_unit.CONVERT: features.STEPS[load_unit.CONVERT]})
        return words in (await owner_page.get(PAGE)).ok().text

    await until(is_done, words)
    return await owner_page.get(PAGE)


async def test_owner_counts_and_converts_loads(coach: CoachClient, owner_page: Visitor, colleague: Colleague) -> None:
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    await train(coach, ana, squat, (5, 100), plan=({"type": "reps"},))
    company = (await owner_page.get("/app/settings/company")).ok()
    assert PAGE in company.links
    refused = await owner_page.submit(company, "/app/settings/company", loadUnit="lb")
    refused.ok(409).says("loadUnit cannot change while loads are stored in it")

    page = (await owner_page.get(PAGE)).ok().says("All loads are stored in kilograms")
    await owner_page.submit(page, f"{PAGE}/count", loadUnit="lb")
    page = await finished(coach, owner_page, "Convert 4 loads to pounds?")
    page.says("1 workout", "2 personal records", "1 training maximum", "rounded to 0.1 lb")
    await owner_page.submit(page, PAGE, loadUnit="lb")
    (await finished(coach, owner_page, "Converted to pounds")).says("All loads are stored in pounds")
    (await owner_page.get("/app/settings/company")).ok()
    eli = await colleague("customers.view", "customers.edit")
    (await eli.get(PAGE)).ok(403)

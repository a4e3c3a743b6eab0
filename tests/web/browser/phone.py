"""A client of a company with an emulated phone: what they train today, and the mistakes that a page must not make."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from aiohttp.test_utils import TestServer
from playwright.async_api import BrowserContext, Locator, Page

from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.service import store_counts
from coaching_service.people.sessions import service as sessions
from tests.support.client import CoachClient
from tests.web.browser.conftest import watch

Json = dict[str, Any]
PHONE: Json = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
    "device_scale_factor": 2 if os.environ.get("PICTURES") else 1,  # otherwise fewer pixels to draw
}


async def sign_client_in(context: BrowserContext, server: TestServer, coach: CoachClient, customer_id: str) -> None:
    """Start a session of a client in a browser."""
    session = await sessions.start_for_customer(coach.ctx, ObjectId(customer_id), "Test phone")
    url = str(server.make_url("/"))
    await context.add_cookies([{"name": "coach_session", "value": session.token, "url": url}])


@dataclass
class Trainee:
    """A client with a superset to do today."""

    coach: CoachClient
    customer: Json
    block: Json
    items: list[Json]

    @property
    def path(self) -> str:
        """The page of the workout."""
        return f"/train/workouts/{self.block['_id']}"

    def row(self, page: Page, item: int, index: int) -> Locator:
        """The form of one set on the page of the workout."""
        planned = self.items[item]
        return page.locator(f"#set-{planned['_id']}-{planned['exerciseId']}-0-{index}")

    def done(self, page: Page, item: int, index: int) -> Locator:
        """The button of one set."""
        return self.row(page, item, index).get_by_role("button", name="Done")

    def state(self, page: Page, item: int, index: int) -> Locator:
        """What a set says about itself."""
        return self.row(page, item, index).locator("[data-set-state]")

    async def sets(self, item: int) -> list[tuple[int, float | None, float | None, bool]]:
        """The sets that the coach sees over REST: index, repetitions, load, whether completed."""
        day = str(self.coach.ctx.caller.today())
        path = f"/coach/customers/{self.customer['_id']}/wblock"
        blocks = (await self.coach.get(path, startDate=day, endDate=day)).ok()
        block = next(each for each in blocks if each["_id"] == self.block["_id"])
        matching = next(each for each in block["items"] if each["_id"] == self.items[item]["_id"])
        return [(each["index"], each["reps"], each["load"], each["isCompleted"]) for each in matching["customerSets"]]

    async def sign_in(self, context: BrowserContext, server: TestServer) -> None:
        """Start a session in a browser."""
        await sign_client_in(context, server, self.coach, self.customer["_id"])


async def superset_today(coach: CoachClient, customer: Json) -> Trainee:
    """Plan a superset of two exercises with three sets each."""
    block = await coach.schedule(customer, str(coach.ctx.caller.today()), "Upper body")
    path = f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}/witems"
    items = []
    for name, reps, load in (("Bench press", 8, 60), ("Seated row", 10, 45)):
        exercise = await coach.create_exercise(name)
        planned = {"type": "reps_load", "minPlannedReps": reps, "maxPlannedReps": reps, "load": load, "rest": 90}
        item = {"type": "EXERCISE", "exerciseId": exercise["_id"], "exerciseSets": [planned] * 3, "supersetId": "A"}
        items.append((await coach.post(path, item)).ok(201))
    # The pages have another server than the coach: it offers first what is stored as used.
    await store_counts(coach.ctx.services)
    return Trainee(coach, customer, block, items)


@dataclass
class Thumb:
    """Taps and fills in, and counts both."""

    taps: int = 0
    fields: int = 0

    async def tap(self, place: Locator) -> None:
        """Tap something."""
        self.taps += 1
        await place.tap()

    async def fill(self, place: Locator, text: str) -> None:
        """Tap a field and type into it."""
        await self.tap(place)
        self.fields += 1
        await place.press_sequentially(text)


@dataclass
class Complaints:
    """The errors on the pages of a phone, except those that a test causes on purpose."""

    observed: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ("ERR_INTERNET_DISCONNECTED",)

    def watch(self, context: BrowserContext, server: TestServer) -> None:
        """Record the errors of a browser."""
        watch(context, str(server.make_url("/")), self.observed)

    def unexpected(self) -> list[str]:
        """The errors that were not expected."""
        return [each for each in self.observed if not any(text in each for text in self.expected)]

"""The files of the demo company: drawn and stored before the transaction that creates the records they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from importlib import import_module
from importlib.resources import files as files_of_package
from typing import TYPE_CHECKING

from coaching_service.core.auth import Company, Principal
from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import WEBM
from coaching_service.demo import samples, training

if TYPE_CHECKING:
    from PIL.Image import Image

COMPANY = "Demo Coaching"
SIDES = {"1": "front", "2": "back", "3": "side"}
PLAN_VERSIONS = 2
_PLAN_LINES = (
    "Breakfast: oats, yoghurt, berries",
    "Lunch: rice, chicken, vegetables",
    "Snack: fruit and a handful of nuts",
    "Dinner: fish, potatoes, salad",
    "Water: two liters a day",
)


@dataclass(frozen=True)
class Assets:
    """The identifiers of the company and of the clients by name, and the stored files by path."""

    company_id: ObjectId = field(default_factory=ObjectId)
    customer_ids: dict[str, ObjectId] = field(
        default_factory=lambda: {client.name: ObjectId() for client in samples.CLIENTS}
    )
    files: dict[str, StoredFile] = field(default_factory=dict)

    async def attach(self, ctx: Context, path: str) -> StoredFile:
        """Return a file, attached in the caller's transaction to the record that refers to it."""
        file = self.files[path]
        await files.attach(ctx, file)
        return file


async def create_assets(ctx: Context) -> Assets:
    """Draw and store all files; they are deleted unless a record refers to them within an hour."""
    await asyncio.to_thread(import_module, "PIL.ImageDraw")  # large, and slow to import
    from coaching_service.demo import drawings

    assets = Assets()
    company = Company(assets.company_id, COMPANY, "UTC", "kg")
    ctx = ctx.acting_as(Principal(assets.company_id, company, "OWNER", "session", "Demo", None, assets.company_id))

    async def store(path: str, drawing: Image, customer_id: ObjectId | None) -> None:
        save = drawings.store_pdf if path.startswith("plan/") else drawings.store_image
        assets.files[path] = await save(ctx, drawing, path.replace("/", "-"), customer_id)

    filmed = assets.customer_ids[samples.WITH_FORM_CHECK]
    with (files_of_package(__package__) / "squat.webm").open("rb") as film:
        assets.files["form check/video"] = await files.store(
            ctx, film, name="squat.webm", content_type=WEBM, customer_id=filmed
        )
    today = ctx.caller.today()
    async with asyncio.TaskGroup() as tasks:
        for drawing in _draw_all(assets.customer_ids, today):
            tasks.create_task(store(*drawing))
    return assets


def _draw_all(customer_ids: Mapping[str, ObjectId], today: date) -> Iterator[tuple[str, Image, ObjectId | None]]:
    """Yield every drawing with its path and the client it belongs to."""
    from coaching_service.demo import drawings

    for *_, pose in samples.EXERCISES:
        yield f"exercise/{pose}", drawings.draw_exercise(pose), None
    yield "form check/poster", drawings.draw_exercise("squat"), customer_ids[samples.WITH_FORM_CHECK]
    for number, client in enumerate(samples.CLIENTS):
        customer_id = customer_ids[client.name]
        yield f"profile/{client.name}", drawings.draw_profile(number), customer_id
        if client.name in samples.WITH_PHOTOS:
            for index, (_, values) in enumerate(photo_dates(client, today)):
                for side in SIDES.values():
                    drawing = drawings.draw_progress(side, values["Waist"], number)
                    yield f"progress/{client.name}/{index}/{side}", drawing, customer_id
        if client.name in samples.WITH_PLAN:
            for version in range(1, PLAN_VERSIONS + 1):
                page = drawings.draw_plan(f"Nutrition plan {version}", _PLAN_LINES[version - 1 :])
                yield f"plan/{client.name}/{version}", page, customer_id


def photo_dates(client: samples.Client, today: date) -> list[tuple[date, dict[str, float]]]:
    """Return the first, a middle and the last date with measurements of a client, on which photos are taken."""
    measurements = training.measurements(client, today)
    return [measurements[0], measurements[len(measurements) // 2], measurements[-1]]

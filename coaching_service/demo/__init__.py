"""The demo company: sample data that shows every feature, the same after every seeding on the same day."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from importlib import import_module
from importlib.resources import files as files_of_package
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from coaching_service.core.auth import ALL_PERMISSIONS, Company, Principal
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import Actor, actor_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import WEBM
from coaching_service.demo import samples
from coaching_service.library import forms, metric_sets
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import service as exercises
from coaching_service.people import api_keys, availability, team
from coaching_service.people.availability import NewAvailability
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerDetails
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.passwords import hash_password
from coaching_service.progress import (
    check_ins,
    form_checks,
    form_responses,
    notes,
    nutrition_plans,
    personal_records,
    progress_photos,
)
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import SampleMessage
from coaching_service.progress.logs import service as logs
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.service import NewMetricEntry
from coaching_service.training import programs, templates
from coaching_service.training.assignments import service as assignments
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import BlockPlan

if TYPE_CHECKING:
    from PIL.Image import Image


# --- Its files: drawn and stored before the transaction that creates the records they belong to -----------------------


COMPANY = "Demo Coaching"
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
        is_page = path.startswith("plan/")
        assets.files[path] = await drawings.store(ctx, drawing, path.replace("/", "-"), customer_id, as_pdf=is_page)

    filmed = assets.customer_ids[samples.WITH_FORM_CHECK]
    with (files_of_package(__package__) / "squat.webm").open("rb") as film:
        assets.files["form check/video"] = await files.store(
            ctx, film, name="squat.webm", content_type=WEBM, customer_id=filmed
        )
    today = ctx.caller.today()
    async with asyncio.TaskGroup() as tasks:

        def add(path: str, drawing: Image, customer_id: ObjectId | None) -> None:
            tasks.create_task(store(path, drawing, customer_id))

        for *_, pose in samples.EXERCISES:
            add(f"exercise/{pose}", drawings.draw_exercise(pose), None)
        add("form check/poster", drawings.draw_exercise("squat"), filmed)
        for number, client in enumerate(samples.CLIENTS):
            customer_id = assets.customer_ids[client.name]
            add(f"profile/{client.name}", drawings.draw_profile(number), customer_id)
            for index, (_, values) in enumerate(photo_dates(client, today)):
                for side in progress_photos.SIDES.values() if client.name in samples.WITH_PHOTOS else ():
                    drawing = drawings.draw_progress(side, values["Waist"], number)
                    add(f"progress/{client.name}/{index}/{side}", drawing, customer_id)
            for version in range(1, PLAN_VERSIONS + 1) if client.name in samples.WITH_PLAN else ():
                page = drawings.draw_plan(f"Nutrition plan {version}", _PLAN_LINES[version - 1 :])
                add(f"plan/{client.name}/{version}", page, customer_id)
    return assets


def photo_dates(client: samples.Client, today: date) -> list[tuple[date, dict[str, float]]]:
    """Return the first, a middle and the last date with measurements of a client, on which photos are taken."""
    measurements = samples.measurements(client, today)
    return [measurements[0], measurements[len(measurements) // 2], measurements[-1]]


# --- Its content, in the caller's transaction -------------------------------------------------------------------------


EMAIL = "demo@example.com"


async def fill_company(
    ctx: Context, owner: Principal, assets: Assets, report: Callable[[str], None], password_hash: str | None = None
) -> None:
    """Add the content to the company of `owner`; the colleague signs in with the password of `password_hash`."""
    ctx = ctx.acting_as(owner)
    name, email = samples.COLLEAGUE
    colleague = await team.create(ctx, name, email, sorted(ALL_PERMISSIONS), "assigned", password_hash)
    report("exercises, forms, metrics and programs")
    check_in, program_id = await _create_library(ctx, assets)
    report("clients, their training and their photos")
    trainers = {"owner": owner.id, "colleague": colleague["_id"], "": None}
    for client in samples.CLIENTS:
        await _create_client(ctx, client, trainers[client.trainer], assets, check_in, program_id)
    for archived_name, surname, groups in samples.ARCHIVED_CLIENTS:
        details: CustomerDetails = {"name": archived_name, "surname": surname, "groups": list(groups)}
        document = batch.build_document(details, str(uuid.uuid4()), sample=True, archived=True)
        await batch.add_many(ctx, [document])


# --- Libraries -------------------------------------------------------------------------------------------------------


async def _create_library(ctx: Context, assets: Assets) -> tuple[forms.Form, ObjectId]:
    """Create the libraries; returns the form of the weekly check-in and the first program."""
    for name, exercise_type, equipment, text, pose in samples.EXERCISES:
        exercise = {
            "name": name,
            "aliases": [],
            "type": exercise_type,
            "level": "beginner",
            "defaultInstructions": text,
            "videoLink": None,
            "tags": ["own"],
            "muscleGroups": [{"_id": next(iter(exercise_models.MUSCLE_NAMES)), "role": "primary"}],
            "equipment": equipment,
            "loadType": "load",
            "media": [],
        }
        created = await exercises.create(ctx, cast("Any", exercise))
        await exercises.add_media(ctx, created["_id"], await assets.attach(ctx, f"exercise/{pose}"))
    created_forms = {form["name"]: await forms.create(ctx, cast("Any", form)) for form in samples.FORMS}
    for name, definitions in samples.METRIC_SETS:
        fields = [{"name": metric, "metricUnitId": metric_sets.unit_id(unit)} for metric, unit in definitions]
        metric_set = {"name": name, "assignAutomatically": False, "metrics": fields}
        await metric_sets.create(ctx, cast("Any", metric_set))
    for name, template_type, tags, session in samples.TEMPLATES:
        template = {"name": name, "type": template_type, "tags": list(tags), "items": samples.plan_items(session)}
        await templates.create(ctx, cast("Any", template))
    program_ids: list[ObjectId] = []
    for name, description, program_tags, weeks, days in samples.PROGRAMS:
        program = await programs.create(ctx, {"name": name, "description": description, "tags": list(program_tags)})
        plans = []
        for week in range(weeks):
            for number, day in enumerate(days):
                session = samples.PROGRAM_SESSIONS[number % len(samples.PROGRAM_SESSIONS)]
                items = samples.plan_items(session, 0.6 + 0.025 * week)
                plans.append({"name": session, "day": 7 * week + day, "isRest": False, "items": items})
        await batches.write(ctx, programs.ProgramPlan(program["_id"]), batches.Batch(created=cast("Any", plans)), [])
        program_ids.append(program["_id"])
    return created_forms[samples.CHECK_IN], program_ids[0]


# --- Clients ---------------------------------------------------------------------------------------------------------


async def _create_client(
    ctx: Context,
    client: samples.Client,
    trainer: ObjectId | None,
    assets: Assets,
    check_in: forms.Form,
    program_id: ObjectId,
) -> None:
    today = ctx.caller.today()
    customer_id = assets.customer_ids[client.name]
    details: CustomerDetails = {
        "name": client.name,
        "surname": client.surname,
        "email": client.email,
        "phone": client.phone,
        "birthday": client.birthday,
        "timezone": client.timezone,
        "groups": list(client.groups),
        "assignedTo": trainer,
    }
    document = batch.build_document(details, str(uuid.uuid4()), sample=True)
    document["_id"] = customer_id
    document["customerRoleData"]["firstLoginDate"] = _at(today - timedelta(weeks=client.weeks))
    document["lastActivityDate"] = _at(today - timedelta(days=1 + 9 * (client.character == "fading")))
    await batch.add_many(ctx, [document])
    await customers.set_profile_photo(ctx, customer_id, await assets.attach(ctx, f"profile/{client.name}"))
    client_today = ctx.caller.today(client.timezone)
    schedule: check_ins.NewCheckIn = {
        "formId": check_in["_id"],
        "metricsSetId": None,
        "taskFields": None,
        "weekday": samples.CHECK_IN_WEEKDAY,
        "everyDays": None,
        "startDate": str(client_today - timedelta(weeks=client.weeks)),
        "until": None,
    }
    weekly = await check_ins.create(ctx, customer_id, schedule)
    answered = samples.past_check_ins(client, weekly["_id"], check_in, client_today)
    program: list[BlockPlan] = []
    if client.name == samples.WITH_PROGRAM:
        monday = today - timedelta(days=today.weekday() + 7)
        dated = await programs.get_dated(ctx, program_id, str(monday))
        assigned = await assignments.add_to_calendar(ctx, dated, customer_id, first=str(today))
        past = [block for block in dated.blocks if str(block["date"]) < str(today)]
        program = [{**block, "assignmentId": assigned["assignmentId"]} for block in past]
    await logs.create_logged_blocks(ctx, customer_id, [*samples.schedule(client, today, program), *answered])
    records = await personal_records.list_records(ctx, customer_id)
    achieved = {record["_id"]: _at(date.fromisoformat(record["date"])) for record in records}
    ctx.changes.set_feed_dates(achieved)
    await _record_measurements(ctx, customer_id, client, today)
    for text in client.notes:
        await notes.create(
            ctx, customer_id, {"content": text, "isPinned": False, "isHealth": client.character == "injured"}
        )
    authors: dict[str, Actor] = {
        "client": {"type": "client", "_id": customer_id, "name": f"{client.name} {client.surname}"},
        "coach": actor_of(ctx),
    }
    messages: list[SampleMessage] = [
        {"author": authors[author], "text": text, "at": now() - timedelta(hours=hours), "isRead": is_read}
        for hours, author, text, is_read in samples.MESSAGES.get(client.name, ())
    ]
    await conversation.create_samples(ctx, customer_id, messages)
    reviewed = today - timedelta(days=samples.REVIEWED_AFTER_DAYS)
    for response in await form_responses.list_between(ctx, customer_id, {"to": str(reviewed)}):
        await form_responses.set_reviewed(ctx, response["_id"], {"reviewed": True})
    if client.name in samples.WITH_PHOTOS:
        dates: dict[ObjectId, datetime] = {}
        for number, (day, _) in enumerate(photo_dates(client, today)):
            for index, side in progress_photos.SIDES.items():
                file = await assets.attach(ctx, f"progress/{client.name}/{number}/{side}")
                new: progress_photos.NewPhoto = {"createdAt": str(day), "imageSideIndex": index}
                photos = await progress_photos.create(ctx, customer_id, new, file)
                dates[photos["_id"]] = _at(day)
        ctx.changes.set_feed_dates(dates)
    if client.name == samples.WITH_FORM_CHECK:
        await _add_form_check(ctx, customer_id, assets, today)
    if client.name == samples.ILL:
        since, until = client_today - timedelta(days=1), client_today + timedelta(days=samples.ILL_DAYS)
        illness: NewAvailability = {"kind": "ill", "from": str(since), "until": str(until), "note": "Flu"}
        await availability.create_availability(ctx, customer_id, illness)
    if client.name in samples.WITH_PLAN:
        for version in range(1, PLAN_VERSIONS + 1):
            file = await assets.attach(ctx, f"plan/{client.name}/{version}")
            await nutrition_plans.upload(ctx, customer_id, file)


async def _record_measurements(ctx: Context, customer_id: ObjectId, client: samples.Client, today: date) -> None:
    measurements = samples.measurements(client, today)
    entries: list[NewMetricEntry] = []
    for metric_set in await metric_sets.list_all(ctx):
        await metrics.assign(ctx, customer_id, metric_set["_id"])
        for metric in metric_set["metrics"]:
            entries += [
                {"metricId": metric["_id"], "date": str(day), "value": values[metric["name"]]}
                for day, values in measurements
            ]
    recorded = await metrics.record_many(ctx, customer_id, entries)
    ctx.changes.set_feed_dates({entry["_id"]: _at(date.fromisoformat(entry["date"])) for entry in recorded})


async def _add_form_check(ctx: Context, customer_id: ObjectId, assets: Assets, today: date) -> None:
    """Add a video of the last session with an exercise, if there was one in the last four weeks."""
    first, last = today - timedelta(weeks=4), today - timedelta(days=1)
    done = [
        (block["_id"], item)
        for block in await workouts.list_blocks(ctx, workouts.ClientCalendar(customer_id), str(first), str(last))
        for item in block["items"]
        if item["type"] == "EXERCISE" and item["exerciseId"] == samples.exercise_id(samples.FORM_CHECK_OF)
    ]
    if done:
        block_id, item = done[-1]
        video, poster = [await assets.attach(ctx, f"form check/{part}") for part in ("video", "poster")]
        await form_checks.create_sample(ctx, customer_id, block_id, item, video, poster)


def _at(day: date) -> datetime:
    """Return the time at which something is recorded on a day, in UTC."""
    return datetime.combine(day, time(8, 15), UTC).replace(tzinfo=None)


# --- Whether it is there ----------------------------------------------------------------------------------------------


_KEY_NAME = "Demo"
Progress = Callable[[str], None]


async def ensure_demo(services: Services, progress: Progress = lambda _: None) -> dict[str, str]:
    """Create the demo company if it is missing; returns `baseUrl, apiKey, companyId, email, password`.

    It is created in one transaction, so that an interrupted start leaves no part of it. The password is derived from
    the master key and the key is stored encrypted, so that later starts return the same. `progress` is called with the
    name of each step.
    """
    ctx = Context(services, operation="addSampleData")
    password = services.vault.derive_text("demo password")
    identity = await identities.find_by_email(ctx.services, EMAIL)
    owner = None if identity is None else await team.get_principal(ctx.services, identity.subject_id)
    if owner is None:
        password_hash = await hash_password(password)
        progress("drawings")
        assets = await create_assets(ctx)

        async def fill(tx: Context) -> Principal:
            company_id = assets.company_id
            owner = await team.create_company(tx, COMPANY, "Dana Demo", EMAIL, password_hash, company_id=company_id)
            await fill_company(tx, owner, assets, progress, password_hash)
            return owner

        owner = await in_transaction(ctx, fill)
    ctx = ctx.acting_as(owner)
    secret = await api_keys.find_secret(ctx, _KEY_NAME)
    if secret is None:
        secret = (await api_keys.create(ctx, _KEY_NAME, {"outreach": True}))["key"]
    return {
        "baseUrl": services.base_url,
        "apiKey": secret,
        "companyId": str(owner.company.id),
        "email": EMAIL,
        "password": password,
    }


def write_atomically(file: Path, content: dict[str, str]) -> None:
    """Write `content` as JSON to `file`, readable by its owner alone; a reader never sees half of it."""
    draft = file.with_suffix(".tmp")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as handle:
        handle.write(json.dumps(content, indent=2) + "\n")
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(file)

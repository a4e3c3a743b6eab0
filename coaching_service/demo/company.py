"""Filling the demo company, in the caller's transaction."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date, timedelta
from typing import cast

from coaching_service.core.auth.permissions import ALL_PERMISSIONS
from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.demo import content
from coaching_service.demo import progress as training_done
from coaching_service.library.forms import service as forms
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricInput
from coaching_service.library.metric_sets.units import unit_id
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerDetails
from coaching_service.people.team import service as team
from coaching_service.training.programs import service as programs
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.models import BlockPlan
from coaching_service.training.workouts.schedule_owners import ClientCalendar

EMAIL = "demo@example.com"
_WEEKS_BACK, _WEEKS_AHEAD = 4, 2
_SESSIONS = tuple(content.SESSIONS)
_TRAINING_DAYS = (0, 2, 4)


async def fill(ctx: Context, password_hash: str, progress: Callable[[str], None]) -> Principal:
    """The company with all that is in it; gives its owner. `progress` is told what is being made."""
    owner = await team.create_company(ctx, "Demo Coaching", "Dana Demo", EMAIL, password_hash)
    ctx = ctx.acting_as(owner)
    name, email = content.COLLEAGUE
    colleague = await team.create_employee(ctx, name, email, sorted(ALL_PERMISSIONS), "assigned", password_hash)
    progress("forms, metrics and programs")
    await _library(ctx)
    progress("clients and their calendars")
    trainers = {"owner": owner.id, "colleague": colleague["_id"], "nobody": None}
    monday = ctx.caller.today() - timedelta(days=ctx.caller.today().weekday() + 7 * _WEEKS_BACK)
    for number, client in enumerate(content.CLIENTS):
        identifier = await _client(ctx, number, client, trainers, monday)
        if client[0] == content.TRAINED:
            await training_done.fill(ctx, identifier, monday)
    return owner


async def _library(ctx: Context) -> None:
    for form in content.FORMS:
        await forms.create(ctx, form)
    for name, metrics in content.METRIC_SETS:
        measured: list[MetricInput] = [{"name": metric, "metricUnitId": unit_id(unit)} for metric, unit in metrics]
        await metric_sets.create(ctx, {"name": name, "assignAutomatically": False, "metrics": measured})
    for name, description, tags, weeks, days in content.PROGRAMS:
        program = await programs.create(ctx, {"name": name, "description": description, "tags": list(tags)})
        plan = [
            _block(number, "day", 7 * week + day, 1 + 0.025 * week)
            for week in range(weeks)
            for number, day in enumerate(days)
        ]
        await workouts.add_blocks(ctx, programs.ProgramPlan(program["_id"]), plan)


async def _client(
    ctx: Context,
    number: int,
    client: tuple[str, str, tuple[str, ...], str, bool],
    trainers: dict[str, ObjectId | None],
    monday: date,
) -> ObjectId:
    name, surname, groups, trainer, archived = client
    details: CustomerDetails = {
        "name": name,
        "surname": surname,
        "groups": list(groups),
        "assignedTo": trainers[trainer],
    }
    identifier = ObjectId()
    made = customers.build_document(details, str(uuid.uuid4()), sample=True, archived=archived)
    await customers.add_many(ctx, [{"_id": identifier, **made}])
    if archived:
        return identifier
    calendar = [
        _block(number + session, "date", str(monday + timedelta(weeks=week, days=day)), 0.8 + 0.02 * (number + week))
        for week in range(_WEEKS_BACK + _WEEKS_AHEAD)
        for session, day in enumerate(_TRAINING_DAYS)
    ]
    await workouts.add_blocks(ctx, ClientCalendar(identifier), calendar)
    return identifier


def _block(number: int, slot: str, when: object, load_factor: float) -> BlockPlan:
    session = _SESSIONS[number % len(_SESSIONS)]
    plan = {"name": session, slot: when, "isRest": False, "items": content.session_items(session, load_factor)}
    return cast("BlockPlan", plan)

"""Every change of a client's schedule publishes ScheduleChanged, inside the transaction of the change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from coaching_service.core.changes.log import DocumentsWritten
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.events import EventBus
from coaching_service.core.ids import ObjectId
from coaching_service.training import programs, templates
from coaching_service.training.assignments import service as assignments
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import CopyRequest
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import (
    Block,
    CompletedWorkChanged,
    NewBlock,
    RecordedItemsRescheduled,
    ScheduleChanged,
)
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.items.models import ITEM_CHANGE, ItemInput
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.schedules import LAST_DAY

TASK: ItemInput = {"type": "TASK", "taskFields": {"title": "Walk", "description": None}}


@dataclass
class Recorder:
    """A context whose ScheduleChanged events are recorded, with the calendar of a client that has one block."""

    ctx: Context
    calendar: ClientCalendar
    block: Block
    events: list[tuple[ObjectId, bool]]

    @property
    def published(self) -> list[ObjectId]:
        return [customer_id for customer_id, _ in self.events]


@pytest.fixture
async def recorder(coach: CoachClient) -> Recorder:
    events: list[tuple[ObjectId, bool]] = []

    async def record(ctx: Context, event: ScheduleChanged) -> None:
        events.append((event.customer_id, ctx.session is not None))

    async def ignore(_: Context, __: Any) -> None:
        return None

    bus = EventBus()
    bus.subscribe(ScheduleChanged, record)
    bus.subscribe(CompletedWorkChanged, ignore)
    bus.subscribe(DocumentsWritten, ignore)
    bus.subscribe(RecordedItemsRescheduled, ignore)
    ctx = replace(coach.ctx, services=replace(coach.ctx.services, events=bus))
    customer = await coach.create_customer()
    calendar = ClientCalendar(ObjectId(customer["_id"]))
    block = await batches.create_block(
        ctx, calendar, {"name": "Legs", "date": MONDAY, "isRest": False, "items": [TASK]}
    )
    events.clear()
    return Recorder(ctx, calendar, block, events)


def _empty(name: str, **day: Any) -> NewBlock:
    return cast("NewBlock", {"name": name, "isRest": False, "items": [], **day})


async def _create(recorder: Recorder) -> None:
    await batches.create_block(recorder.ctx, recorder.calendar, _empty("Arms", date=MONDAY))


async def _change_date(recorder: Recorder) -> None:
    await workouts.update(recorder.ctx, recorder.calendar, recorder.block["_id"], {"date": TUESDAY})


async def _make_rest_day(recorder: Recorder) -> None:
    await workouts.update(recorder.ctx, recorder.calendar, recorder.block["_id"], {"isRest": True})


async def _delete(recorder: Recorder) -> None:
    await workouts.delete(recorder.ctx, recorder.calendar, recorder.block["_id"])


async def _copy(recorder: Recorder) -> None:
    await batches.copy(recorder.ctx, recorder.calendar, recorder.block["_id"], TUESDAY)


async def _shift(recorder: Recorder) -> None:
    await workouts.shift(recorder.ctx, recorder.calendar, MONDAY, 7)


async def _create_many(recorder: Recorder) -> None:
    block: NewBlock = {"name": "Arms", "date": TUESDAY, "isRest": False, "items": [TASK]}
    await schedule.create_blocks(recorder.ctx, recorder.calendar, [block, block])


async def _copy_days(recorder: Recorder) -> None:
    await schedule.copy_days(recorder.ctx, recorder.calendar, CopyRequest(MONDAY, MONDAY, TUESDAY, repeat=2))


async def _clear(recorder: Recorder) -> None:
    await schedule.clear(recorder.ctx, recorder.calendar, MONDAY, TUESDAY)


async def _end_program(recorder: Recorder) -> None:
    program = await programs.create(recorder.ctx, {"name": "Base", "description": None, "tags": []})
    plan = programs.ProgramPlan(program["_id"])
    await batches.create_block(recorder.ctx, plan, _empty("Day 1", day=1))
    customer_id = recorder.calendar.customer_id
    assigned = await assignments.assign(recorder.ctx, program["_id"], customer_id, LAST_DAY)
    recorder.events.clear()
    assert assigned["assignmentId"] is not None
    await assignments.end(recorder.ctx, customer_id, assigned["assignmentId"], {"removeUpcoming": True})


async def _add_item(recorder: Recorder) -> None:
    await block_items.create_item(recorder.ctx, recorder.calendar, recorder.block["_id"], TASK)


async def _remove_item(recorder: Recorder) -> None:
    item_id = recorder.block["items"][0]["_id"]
    await block_items.delete_item(recorder.ctx, recorder.calendar, recorder.block["_id"], item_id)


async def _move_item(recorder: Recorder) -> None:
    target = await batches.create_block(recorder.ctx, recorder.calendar, _empty("Arms", date=TUESDAY))
    recorder.events.clear()
    await block_items.move_item(
        recorder.ctx,
        recorder.calendar,
        {"wblockId": recorder.block["_id"], "witemId": recorder.block["items"][0]["_id"]},
        {"wblockId": target["_id"], "index": 0},
    )


async def _assign_program(recorder: Recorder) -> None:
    program = await programs.create(recorder.ctx, {"name": "Base", "description": None, "tags": []})
    plan = programs.ProgramPlan(program["_id"])
    await batches.create_block(recorder.ctx, plan, _empty("Day 1", day=1))
    assert recorder.events == [], "a program is not the schedule of a client"
    await assignments.assign(recorder.ctx, program["_id"], recorder.calendar.customer_id, MONDAY)


async def _apply_template(recorder: Recorder) -> None:
    template = await templates.create(recorder.ctx, {"name": "Short", "type": None, "tags": [], "items": [TASK]})
    sent: Any = {"customerId": recorder.calendar.customer_id, "date": TUESDAY, "onConflict": "add"}
    await templates.apply(recorder.ctx, template["_id"], sent)


@pytest.mark.parametrize(
    "change",
    [
        _create,
        _change_date,
        _make_rest_day,
        _delete,
        _copy,
        _shift,
        _create_many,
        _copy_days,
        _clear,
        _end_program,
        _add_item,
        _remove_item,
        _move_item,
        _assign_program,
        _apply_template,
    ],
)
async def test_change_of_schedule_is_published_in_its_transaction(recorder: Recorder, change: Any) -> None:
    await change(recorder)
    assert recorder.events == [(recorder.calendar.customer_id, True)]


async def test_change_of_name_is_not_a_change_of_schedule(recorder: Recorder) -> None:
    await workouts.update(recorder.ctx, recorder.calendar, recorder.block["_id"], {"name": "Lower body"})
    item_id = recorder.block["items"][0]["_id"]
    change = ITEM_CHANGE.load({"taskFields": {"title": "Run"}})
    await block_items.update_item(recorder.ctx, recorder.calendar, recorder.block["_id"], item_id, change)
    assert recorder.published == []


async def test_failed_change_publishes_nothing(recorder: Recorder) -> None:
    with pytest.raises(NotFound):
        await workouts.delete(recorder.ctx, recorder.calendar, ObjectId())
    assert recorder.published == []


async def test_a_dry_run_publishes_nothing(recorder: Recorder) -> None:
    ctx, calendar = recorder.ctx, recorder.calendar
    await schedule.copy_days(ctx, calendar, CopyRequest(MONDAY, MONDAY, TUESDAY), dry_run=True)
    await schedule.clear(ctx, calendar, MONDAY, TUESDAY, dry_run=True)
    assert recorder.published == []

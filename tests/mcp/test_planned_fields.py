"""Every planned field of blocks, items and sets is in every copy.

The fields and values for them come from their declaration, so that a field that is added later is tested as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest
from marshmallow import fields

from coaching_service.core.fields import Variant, input_of, names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import snake_case
from coaching_service.core.validation import Choice, Identifier, ListOf, Text
from coaching_service.training import templates
from coaching_service.training.assignments import service as assignments
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import CopyRequest
from coaching_service.training.workout_text.finding import WorkoutDay, read_texts
from coaching_service.training.workout_text.lines import label_supersets, write_header, write_item
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import BlockSettings, PlannedBlock, StoredBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.items.models import NEW_ITEM
from coaching_service.training.workouts.items.service import PLANNED_FIELDS, create_item, resolve_items
from tests.conftest import NewCompany
from tests.support.client import MONDAY, SUNDAY, CoachClient
from tests.support.mcp_client import McpHttpClient, tool_change
from tests.support.portable_company import hire_colleagues
from tests.support.training import QUESTIONS, Json, client_path, log, metric_set
from tests.support.transfer import export, exported_rows, import_file, make_zip

_MARKS = str.maketrans("", "", "«»")  # around texts that people typed; the server removes them from arguments
TARGET = "2026-03-16"
# What a field with a form of its own is sent as; a field without an entry gets a value of its type.
SPECIAL: Json = {"supersetId": "A", "questions": QUESTIONS, "index": None}


@dataclass(frozen=True)
class Source:
    """A block with a value in each planned field, on a client's calendar."""

    coach: CoachClient
    customer: Json
    block: StoredBlock

    @property
    def owner(self) -> ClientCalendar:
        return ClientCalendar(ObjectId(self.customer["_id"]))

    async def copies(self, first: str = TARGET, last: str = TARGET) -> list[Json]:
        """What is planned in the blocks from one date to another."""
        blocks = await workouts.list_stored_blocks(self.coach.ctx, self.owner)
        return [plan_of(block) for block in blocks if first <= str(block["date"]) <= last]


def value_of(name: str, field: fields.Field[Any], ids: Mapping[str, str]) -> Any:
    """A value of a field of requests, other than the one that the field has without it."""
    if name in SPECIAL:
        return SPECIAL[name]
    if "example" in field.metadata and not isinstance(field, Identifier):
        return field.metadata["example"]
    if isinstance(field, Identifier):
        return ids[name]
    if isinstance(field, Choice):
        return next(each for each in reversed(field.choices) if each != field.load_default)
    if isinstance(field, fields.Boolean):
        return not field.load_default
    if isinstance(field, Text):
        return f"Its {name}"
    if isinstance(field, fields.Integer | fields.Float):
        return int(cast("Any", field).minimum or 0) + (3 if name.startswith("max") else 2)
    if isinstance(field, fields.Nested):
        return values_of(field.schema.fields, ids)
    assert isinstance(field, ListOf), name
    if isinstance(field.inner, Variant):
        return [planned for each in field.inner.by_type.items() for planned in sets_of(*each, ids)]
    return [value_of(name, field.inner, ids)]


def values_of(declared: Mapping[str, fields.Field[Any]], ids: Mapping[str, str]) -> Json:
    """A value for each field."""
    values = {name: value_of(name, field, ids) for name, field in declared.items()}
    return {name: value for name, value in values.items() if value is not None}


def sets_of(set_type: str, schema: Any, ids: Mapping[str, str]) -> list[Json]:
    """Sets of a type with a value in each field: the load, and the percentage in its place."""
    values = values_of(schema.fields, ids) | {"type": set_type}
    loads = ("load", "loadPercent") if "load" in values else ("",)
    return [{name: value for name, value in values.items() if name not in loads or name == load} for load in loads]


@pytest.fixture
async def source(coach: CoachClient) -> Source:
    customer = await coach.create_customer()
    ids = {
        "exerciseId": (await coach.create_exercise("Back squat"))["_id"],
        "metricsSetId": (await metric_set(coach))["_id"],
        "formId": (await coach.post("/coach/forms", {"name": "Check-in", "questions": QUESTIONS})).ok(201)["_id"],
    }
    items = [
        values_of(schema.fields, ids) | {"type": item_type}
        for item_type, schema in cast("Mapping[str, Any]", NEW_ITEM.by_type).items()
        for _ in range(2)  # a superset has two exercises
    ]
    body = {**values_of(input_of(PlannedBlock)().fields, ids), "date": MONDAY, "items": items}
    created = (await coach.post(client_path(customer, "wblocks"), body)).ok(201)
    owner = ClientCalendar(ObjectId(customer["_id"]))
    [block] = await workouts.list_stored_blocks(coach.ctx, owner)
    assert str(block["_id"]) == created["_id"]
    return Source(coach, customer, block)


def plan_of(block: Mapping[str, Any]) -> Json:
    """What is planned in a stored block: the fields that are declared as planned, without identifiers."""
    items = [plan_of_item(item) for item in block["items"]]
    return {**without_ids(take(PlannedBlock, block)), "items": items}


def plan_of_item(item: Mapping[str, Any]) -> Json:
    plan: Json = without_ids({name: item[name] for name in ("type", *PLANNED_FIELDS[item["type"]])})
    return plan


def without_ids(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: without_ids(each) for name, each in value.items() if name != "_id"}
    if isinstance(value, list):
        return [without_ids(each) for each in value]
    return "identifier" if isinstance(value, ObjectId) else value


def is_given(value: Any) -> bool:
    return value not in (None, False, "", [])


async def test_the_source_has_a_value_in_every_planned_field(source: Source) -> None:
    assert [name for name in names_of(PlannedBlock) if not is_given(source.block.get(name))] == []
    items: list[Any] = list(source.block["items"])
    assert {item["type"] for item in items} == set(PLANNED_FIELDS)
    for item in items:
        assert [name for name in PLANNED_FIELDS[item["type"]] if not is_given(item.get(name))] == []
    for sets in (items[0]["exerciseSets"], items[2]["circuitExercises"][0]["sets"]):
        for set_type, schema in _set_schemas().items():
            of_type = [each for each in sets if each["type"] == set_type]
            given = {name for each in of_type for name, value in each.items() if is_given(value)}
            assert given == set(schema.fields), set_type


def _set_schemas() -> Mapping[str, Any]:
    exercise_sets: Any = cast("Any", NEW_ITEM.by_type["EXERCISE"]).fields["exerciseSets"]
    by_type: Mapping[str, Any] = exercise_sets.inner.by_type
    return by_type


async def copy_block(source: Source) -> None:
    await batches.copy(source.coach.ctx, source.owner, source.block["_id"], TARGET)


async def copy_week(source: Source) -> None:
    await schedule.copy_days(source.coach.ctx, source.owner, CopyRequest(MONDAY, SUNDAY, TARGET))


async def assign_program_from_calendar(source: Source) -> None:
    ctx, customer_id = source.coach.ctx, ObjectId(source.customer["_id"])
    program = await schedule.create_program(ctx, customer_id, MONDAY, SUNDAY, "Legs")
    await assignments.assign(ctx, program["_id"], customer_id, TARGET)


@pytest.mark.parametrize("copy", [copy_block, copy_week, assign_program_from_calendar])
async def test_copies_have_every_planned_field(source: Source, copy: Callable[[Source], Awaitable[None]]) -> None:
    await copy(source)
    assert await source.copies() == [plan_of(source.block)]


async def test_block_from_a_template_of_a_block_has_every_planned_field(source: Source) -> None:
    ctx, customer_id = source.coach.ctx, ObjectId(source.customer["_id"])
    details: Any = {"name": source.block["name"], "type": None, "tags": []}
    template = await templates.create_from_block(ctx, source.owner, source.block["_id"], details)
    await templates.apply(ctx, template["_id"], {"customerId": customer_id, "date": TARGET, "onConflict": "add"})
    # A template is a workout: it is never a day of rest.
    assert await source.copies() == [{**plan_of(source.block), "isRest": False}]


async def test_export_and_import_keep_every_planned_field(source: Source, new_company: NewCompany) -> None:
    entries = await export(source.coach)
    target = await new_company()
    await hire_colleagues(target)
    job = await import_file(target, make_zip(entries))
    assert job["result"]["failed"] == 0, job["errors"]
    [customer] = (await target.customers(archived="false"))["docs"]
    [block] = await workouts.list_stored_blocks(target.ctx, ClientCalendar(ObjectId(customer["_id"])))
    assert plan_of(block) == plan_of(source.block)


async def test_text_of_items_is_read_as_the_same_plan(source: Source) -> None:
    ctx = source.coach.ctx
    block = await workouts.get(ctx, source.owner, source.block["_id"])
    labels = label_supersets(block["items"])
    lines = [
        " ".join([*([labels[item["_id"]]] if item["_id"] in labels else []), line]) if number == 0 else line
        for item in block["items"]
        for number, line in enumerate(write_item(item, ctx.caller.load_unit))
    ]
    read = await read_texts(ctx, [("text", "\n".join(lines).translate(_MARKS))])
    [details] = await resolve_items(ctx, {"items": read.items[0]})
    assert [plan_of_item(create_item(item)) for item in details] == plan_of(source.block)["items"]


async def test_assistants_read_and_write_every_planned_field_of_blocks(source: Source, mcp: McpHttpClient) -> None:
    block = await workouts.get(source.coach.ctx, source.owner, source.block["_id"])
    header = write_header(block)
    for name in names_of(PlannedBlock):
        other: Any = {**block, name: False if isinstance(cast("Json", block)[name], bool) else None}
        assert name == "name" or write_header(other) != header, f"{name} is not in the text of a workout"
    sent = {name: value for name, value in take(PlannedBlock, block).items() if name in WorkoutDay().fields}
    assert set(sent) == set(names_of(PlannedBlock))
    days = [{**sent, "date": TARGET}]
    tool_change(await mcp.call("create_workout", customerId=source.customer["_id"], days=days))
    assert await source.copies() == [{**plan_of(source.block), "items": []}]
    dates = {"startDate": TARGET, "endDate": TARGET}
    answer = (await mcp.call("get_workouts", customerId=source.customer["_id"], **dates))["structuredContent"]
    settings = without_ids(take(BlockSettings, block))
    assert [doc["settings"] for doc in answer["docs"]] == [settings]
    plain: Any = {"customerId": source.customer["_id"], "days": [{"date": "2026-03-17", "name": block["name"]}]}
    created = tool_change(await mcp.call("create_workout", **plain))
    given = {"customerId": source.customer["_id"], "workoutId": created["workoutId"], **settings}
    tool_change(await mcp.call("update_workout", **given))
    assert await source.copies("2026-03-17", "2026-03-17") == [{**plan_of(source.block), "items": []}]


async def test_csv_of_workouts_has_every_planned_field_of_blocks(source: Source) -> None:
    item = source.block["items"][0]
    (await log(source.coach, {**source.block}, {**item}, customerSets=[{"reps": 5}])).ok()
    [row] = await exported_rows(source.coach, "workouts")
    columns = {name: "title" if name == "name" else snake_case(name) for name in names_of(PlannedBlock)}
    # A row is work that was done: it is never of a day of rest.
    assert [name for name, column in columns.items() if column not in row] == ["isRest"]
    written = {name: row[column] for name, column in columns.items() if column in row}
    assert written == {name: str(value) for name, value in source.block.items() if name in written}

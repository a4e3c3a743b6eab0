"""Workout templates: workouts that can be copied to any client's calendar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core import fields as core_fields
from coaching_service.core import list_selection
from coaching_service.core.auth import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, gather_reads, transactional, version_conflict
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.errors import Conflict, NotFound, invalid_field, require_found
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import keyword_filter, normalize, search_fields_of
from coaching_service.core.validation import CalendarDate, ListOf, StringList, Text, patch_of
from coaching_service.people.account import Conversion, LoadCount
from coaching_service.training.schedule.models import OnConflict, on_conflict
from coaching_service.training.schedule.service import find_conflicts, resolve_conflicts
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.items import convert_items
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK, Block, PlannedBlock, StoredBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.descriptions import COMPUTED_ITEM_FIELDS, ITEM_REFERENCES, complete_items
from coaching_service.training.workouts.items.models import ITEM_RESPONSE, NEW_ITEM, ItemInput, WorkItem
from coaching_service.training.workouts.items.service import MAX_ITEMS, create_items, list_contacts, load_references

# --- Workout templates as they are sent, stored and read --------------------------------------------------------------


class TemplateDetails(block_models.WorkoutSettings):
    """The fields of a template without its items."""

    name: Annotated[str, Text()]
    type: Annotated[str | None, Text(), core_fields.Description(request="Free text, such as strength or mobility.")]
    tags: Annotated[list[str], StringList(), core_fields.Default(list)]


class NewWorkoutTemplate(TemplateDetails):
    """A template to create."""

    items: Annotated[list[ItemInput], ListOf(NEW_ITEM, maximum=MAX_ITEMS), core_fields.Default(list)]


class TemplateContent(TemplateDetails):
    """The content of a template; items are stored ones in the database, and as they are read in results."""

    items: Annotated[list[WorkItem], fields.List(ITEM_RESPONSE)]


class WorkoutTemplate(TemplateContent, declared.Stored):
    """A workout that can be copied to any calendar."""


class TemplateApplication(TypedDict):
    """The client and the date to which a template is copied."""

    customerId: ObjectId
    date: Annotated[str, CalendarDate()]
    onConflict: Annotated[OnConflict, on_conflict()]


class TemplateQuery(list_selection.UpdatedSince):
    """The filters of the template list."""

    type: NotRequired[Annotated[str, core_fields.Description("Exactly this type.")]]
    tag: NotRequired[Annotated[str, core_fields.Description("Exactly this tag.")]]
    q: NotRequired[Annotated[str, core_fields.Description("Every word must occur in name or tags.")]]


TemplateChange: TypeAlias = core_fields.Change[NewWorkoutTemplate]
TemplateName: TypeAlias = core_fields.Part[WorkoutTemplate, Literal["_id", "name"]]
TemplateFields: TypeAlias = core_fields.Partial[TemplateContent]


# --- Workout templates in the database --------------------------------------------------------------------------------


_templates = Documents[WorkoutTemplate](
    "workoutTemplates",
    (
        declared.Index(("sortName", "_id")),
        declared.Index(("suf",)),
        declared.Index(("tags", "sortName", "_id")),
        declared.Index(("_id",)),
        declared.Index((list_selection.UPDATED,)),
    ),
    private=("companyId", "sortName", "search", "suf"),
    history=declared.History(
        "template",
        lambda action, known, _: (
            {"type": "template.deleted", "data": {"templateId": known["_id"]}} if action == "deleted" else None
        ),
        contact=list_contacts,
    ),
    transfer=declared.Portable(
        WorkoutTemplate,
        declared.TEMPLATES,
        computed=COMPUTED_ITEM_FIELDS,
        references=ITEM_REFERENCES,
        complete=lambda template: {**complete_items(template), **_search_fields(template)},
    ),
)
ORDER = ("sortName", "_id")
BY_UPDATE, BY_NAME = _templates.index_name(list_selection.UPDATED), _templates.index_name(*ORDER)
BY_SUFFIX = _templates.index_name("suf")


async def find_one(ctx: Context, template_id: ObjectId) -> WorkoutTemplate | None:
    """Return the template, or None."""
    return await _templates.find_one(ctx, {"_id": template_id})


async def rewrite(
    ctx: Context, template_id: ObjectId, fields: TemplateFields, version: int | None
) -> WorkoutTemplate | None:
    """Set fields of a template. Returns None if it does not exist; raises Conflict if it has another version."""

    def mutate(stored: WorkoutTemplate) -> Mapping[str, Any]:
        return {**fields, **_search_fields({**stored, **fields})} if fields else fields

    return await _templates.rewrite(ctx, {"_id": template_id}, mutate, version=version)


def _search_fields(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the private fields by which a template is sorted and searched."""
    return {"sortName": normalize(template["name"]), **search_fields_of(template["name"], *template["tags"])}


_NULLS = core_fields.nulls_of(WorkoutTemplate)  # of fields that older templates do not have


routes = Routes(
    "/coach/workout-templates",
    tag="Workout templates",
    path_descriptions={"templateId": "The identifier of the workout template."},
)


@routes.get("", access=coach(PROGRAMS.VIEW))
async def list_workout_templates(ctx: Context, query: TemplateQuery) -> list[WorkoutTemplate]:
    """List workout templates by name."""
    keywords = normalize(query.get("q", ""))
    if "\0" in keywords:
        return []
    filters = (("type", query.get("type")), ("tags", query.get("tag")))
    where: Filter = {name: value for name, value in filters if value is not None}
    where |= keyword_filter(keywords) if keywords else {}
    if (since := query.get("updatedSince")) is not None:
        where[list_selection.UPDATED] = {"$gte": since}
    found = await _templates.find(ctx, where, sort=ORDER, hint=None if since is None else BY_UPDATE)
    return await _present(ctx, found)


@routes.get("/{templateId}", access=coach(PROGRAMS.VIEW), operation_id="getWorkoutTemplate")
async def get(ctx: Context, template_id: ObjectId) -> WorkoutTemplate:
    """Read a workout template."""
    return await _present_one(ctx, await find_one(ctx, template_id))


@routes.post(
    "",
    access=coach(PROGRAMS.CREATE),
    errors=(NotFound,),
    example={
        "name": "Morning mobility",
        "type": "mobility",
        "tags": ["short"],
        "items": [{"type": "TASK", "taskFields": {"title": "Walk for ten minutes"}}],
    },
    operation_id="createWorkoutTemplate",
)
@transactional
async def create(ctx: Context, body: NewWorkoutTemplate) -> WorkoutTemplate:
    """Create a workout template."""
    new_items = await create_items(ctx, dict(enumerate(body["items"])))
    await items.fix_load_unit(ctx, new_items)
    new: TemplateContent = {**body, "items": new_items}
    return await _present_one(ctx, await _templates.insert(ctx, {**new, **_search_fields(new)}))


@routes.patch(
    "/{templateId}",
    access=coach(PROGRAMS.EDIT),
    locks="template",
    body=patch_of(input_of(NewWorkoutTemplate), name="WorkoutTemplateChange"),
    example={"tags": ["short", "home"], "version": 0},
    operation_id="updateWorkoutTemplate",
)
@transactional
async def update(ctx: Context, template_id: ObjectId, body: TemplateChange) -> WorkoutTemplate:
    """Change a workout template.

    `items` are replaced as a whole.
    """
    fields = cast("TemplateFields", core_fields.take(TemplateDetails, body))
    if "items" in body and (stored := await find_one(ctx, template_id)) is not None:
        fields["items"] = await create_items(ctx, dict(enumerate(body["items"])), stored["items"])
        await items.fix_load_unit(ctx, fields["items"])
    return await _present_one(ctx, await rewrite(ctx, template_id, fields, body.get("version")))


@routes.delete("/{templateId}", access=coach(PROGRAMS.DELETE), locks="template", operation_id="deleteWorkoutTemplate")
async def delete(ctx: Context, template_id: ObjectId) -> None:
    """Delete a workout template.

    Blocks that were created from it remain.
    """
    require_found(await _templates.delete(ctx, {"_id": template_id}), "workout template")


async def list_page(ctx: Context, *, page: int, size: int, keywords: str = "") -> list_selection.Page[WorkoutTemplate]:
    """Return one page of templates, sorted by name; each keyword must occur in name or tags."""
    keywords = normalize(keywords)
    if "\0" in keywords:
        return list_selection.page_document([], 0, page, size)
    condition: Filter = keyword_filter(keywords) if keywords else {}
    hint = BY_SUFFIX if keywords else BY_NAME
    skip = list_selection.skip_of(page, size)
    docs, total = await gather_reads(
        ctx,
        _templates.find(ctx, condition, sort=ORDER, skip=skip, limit=size, hint=hint),
        _templates.count(ctx, condition, hint=hint),
    )
    return list_selection.page_document(await _present(ctx, docs), total, page, size)


async def list_names(ctx: Context, limit: int) -> list[TemplateName]:
    """Return the names of at most `limit` templates, sorted by name."""
    return await _templates.find(ctx, {}, sort=ORDER, limit=limit, fields=("name",), hint=BY_NAME)


@transactional
async def create_from_block(
    ctx: Context, owner: ScheduleOwner, block_id: ObjectId, details: TemplateDetails
) -> WorkoutTemplate:
    """Create a template of what a block plans. Raises NotFound, Forbidden for the block and its owner."""
    plan = await workouts.get_plan(ctx, owner, block_id)
    await items.fix_load_unit(ctx, plan["items"])
    new: TemplateContent = {**core_fields.take(TemplateContent, plan), **details}
    return await _present_one(ctx, await _templates.insert(ctx, {**new, **_search_fields(new)}))


@routes.post(
    "/{templateId}/apply",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    returns=WORKOUT_BLOCK,
    errors=(Conflict,),
    example={"customerId": "66f0c0ffee0000000000abcd", "date": "2026-03-02"},
    operation_id="applyWorkoutTemplate",
)
@transactional
async def apply(ctx: Context, template_id: ObjectId, body: TemplateApplication) -> Block:
    """Add a workout template to a client's calendar.

    The response is the new block. With `onConflict` skip, a day that has blocks is 409 and stays as it is.
    """
    calendar, on_conflict = ClientCalendar(body["customerId"]), body["onConflict"]
    await calendar.require_access(ctx)
    template = require_found(await find_one(ctx, template_id), "workout template")
    plan: block_models.BlockPlan = {**block_models.plan_of(template, template["items"]), "date": body["date"]}
    days = await batches.read_days(ctx, calendar, {"$eq": body["date"]})
    batch = resolve_conflicts(calendar, [plan], days, on_conflict)
    if not batch.created:
        there = ", ".join(conflict["name"] for conflict in find_conflicts(calendar, [plan], days, on_conflict))
        raise Conflict(f"Nothing was added: this day has workouts ({there})", code="DAY_HAS_WORKOUTS")
    return (await batches.apply(ctx, calendar, batch, days))["created"][0]


async def apply_named(
    ctx: Context, template_name: str, owner: ScheduleOwner, day: str | int, instead: Mapping[str, object]
) -> Block:
    """Add the template with a name, in any case, to a date of a client or a day of a program, and return the new block.

    What is planned in `instead`, and is not empty, replaces what the template has. Raises Forbidden and NotFound for
    the owner, InvalidFields for `template` if no or more than one template has the name.
    """
    await owner.require_access(ctx)
    where = {"sortName": normalize(template_name)}
    if not (named := await _templates.find(ctx, where, limit=2, hint=BY_NAME)):
        raise invalid_field("template", "must be the name of a template", code="UNKNOWN_TEMPLATE")
    if len(named) > 1:
        raise invalid_field("template", "is the name of several templates: rename one", code="AMBIGUOUS_TEMPLATE")
    given = {name: value for name, value in core_fields.take(PlannedBlock, instead).items() if value not in (None, "")}
    plan = cast("block_models.BlockPlan", {**block_models.plan_of(named[0], named[0]["items"]), **given})
    return await batches.add_to_day(ctx, owner, plan, day)


async def _present_one(ctx: Context, template: WorkoutTemplate | None) -> WorkoutTemplate:
    return (await _present(ctx, [require_found(template, "workout template")]))[0]


async def _present(ctx: Context, templates: Sequence[WorkoutTemplate]) -> list[WorkoutTemplate]:
    references = await load_references(ctx, [item for template in templates for item in template["items"]])
    return [
        {
            **_NULLS,
            **template,
            "items": items.present_items(template["items"], template["version"], references, ctx.caller),
        }
        for template in templates
    ]


# --- A change of the unit of loads ------------------------------------------------------------------------------------


list_ids_after = _templates.list_ids_after


async def convert_template(ctx: Context, template_id: ObjectId, conversion: Conversion) -> LoadCount:
    """Convert the loads of a template, in the caller's transaction."""
    if (template := await find_one(ctx, template_id)) is None:
        return LoadCount()
    converted, loads = convert_items(template["items"], conversion.convert)
    if loads and conversion.is_stored:  # a change, but not one of the history
        change = {"$set": {"items": converted, "updatedAt": now()}, "$inc": {"version": 1}}
        await _templates.set_derived(ctx, {"_id": template_id}, change)
    return LoadCount(1 if loads else 0, loads)


async def has_loads(ctx: Context) -> bool:
    """Return whether a load is planned in any template."""
    sets = ("exerciseSets", "circuitExercises.sets")
    where: Filter = {"$or": [{f"items.{name}.load": {"$type": "number"}} for name in sets]}
    return await _templates.find_one(ctx, where, ("_id",)) is not None


# --- Editing ----------------------------------------------------------------------------------------------------------
# A template as the owner of a single workout, so that the operations on items of workouts also change templates.


@dataclass(frozen=True)
class TemplatePlan(ScheduleOwner):
    """A template as the owner of one block, which has the identifier of the template and no day."""

    template_id: ObjectId

    @property
    def block_filter(self) -> Filter:
        """The filter that finds the template."""
        return {"_id": self.template_id}

    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound if the company has no such template."""
        require_found(await find_one(ctx, self.template_id), "workout template")

    async def find_block(self, ctx: Context, block_id: ObjectId) -> StoredBlock | None:
        """Return the template in the place of a block, or None."""
        template = await find_one(ctx, block_id)
        return None if template is None else _as_block(template)

    async def has_item(self, ctx: Context, item_id: ObjectId) -> bool:
        """Return whether the template has the item."""
        template = await find_one(ctx, self.template_id)
        return template is not None and any(item["_id"] == item_id for item in template["items"])

    async def push_item(self, ctx: Context, block_id: ObjectId, item: WorkItem) -> StoredBlock | None:
        """Append an item to a template; None if there is no such template with room."""
        if (block := await self.find_block(ctx, block_id)) is None or len(block["items"]) >= MAX_ITEMS:
            return None
        return await self.set_items(ctx, block, [*block["items"], item])

    async def set_items(self, ctx: Context, block: StoredBlock, items: Sequence[WorkItem]) -> StoredBlock:
        """Replace the items of a template. Raises Conflict if it has changed since it was read, or was deleted."""
        template = await rewrite(ctx, block["_id"], {"items": list(items)}, block["version"])
        if template is None:
            raise version_conflict()
        return _as_block(template)

    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Do nothing: nothing depends on a template."""


def _as_block(template: WorkoutTemplate) -> StoredBlock:
    """Return a template as a block without an owner and a day."""
    block = {
        **core_fields.take(declared.Returned, template),
        **dict.fromkeys(("customerId", "programId", "assignmentId", "checkInId", "date", "day")),
        **block_models.no_session(),
        **block_models.plan_of(template, template["items"]),
    }
    return cast("StoredBlock", block)

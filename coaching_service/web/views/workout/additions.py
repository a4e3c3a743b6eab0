"""What is put into a workout: exercises, alone or in a circuit, tasks, reminders, forms and metrics to record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from marshmallow import Schema, ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import EXERCISES, FORMS, METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page
from coaching_service.core.validation import Identifier, Input, Integer, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import Form
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricSet
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.item_schemas import NEW_ITEM, NewReminderFields, NewTaskFields
from coaching_service.training.workouts.owners import Owner
from coaching_service.training.workouts.set_schemas import MAX_SETS, RepsLoadSet
from coaching_service.web.pages import Redirect
from coaching_service.web.search_fields import Keywords
from coaching_service.web.views.items import described
from coaching_service.web.views.workout import circuits
from coaching_service.web.views.workout.kind import BLOCK, Handler, Kind

_FOUND = 12
_NEW_CIRCUIT = "new"
_ASKED = ("exerciseId", "sets", "minPlannedReps", "maxPlannedReps", "load", "rest", "circuit")


class _Planned(RepsLoadSet):
    exerciseId = Identifier(required=True)
    sets = Integer(minimum=1, maximum=MAX_SETS, required=True)
    circuit = Text(allow_blank=True, load_default="")

    @validates_schema
    def ends_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """From fewer repetitions to more."""
        fewest, maximum = data["minPlannedReps"], data["maxPlannedReps"]
        if fewest is not None and maximum is not None and fewest > maximum:
            raise ValidationError("must not be more than the repetitions they go up to", "minPlannedReps")


class _NewForm(Input):
    formId = Identifier(required=True)


class _NewMetrics(Input):
    metricsSetId = Identifier(required=True)


class Search(Input):
    """Which exercises are offered."""

    keywords = Keywords()
    page = Integer(minimum=1, load_default=1)


def more_of(here: str, query: Document) -> str:
    """The address at which more is added to the workout whose page is `here`, with the exercises found."""
    return f"{here}?{urlencode({'keywords': query['keywords'], 'page': query['page']})}#more"


async def offered(ctx: Context, query: Document) -> Document:
    """What may be added: `found`, a page of exercises; `forms` and `metric_sets`, each `(identifier, name)`."""
    may = ctx.caller.permissions
    found: Page[Document] | dict[str, list[Document]] = {"docs": []}
    if EXERCISES.VIEW in may:
        found = await exercises.page(ctx, page=query["page"], size=_FOUND, keywords=query["keywords"])
    return {
        "found": found,
        "forms": _choices(await forms.list_all(ctx)) if FORMS.VIEW in may else [],
        "metric_sets": _choices(await metric_sets.list_all(ctx)) if METRICS.VIEW in may else [],
    }


def _choices(found: Sequence[Form | MetricSet]) -> list[tuple[str, str]]:
    return [(str(each["_id"]), each["name"]) for each in found]


def declare(kind: Kind, workout_page: Handler) -> None:
    """Declare the forms that add to a workout; they stand on `workout_page`."""
    _declare_exercises(kind, workout_page)
    _declare_others(kind, workout_page)


def _declare_exercises(kind: Kind, workout_page: Handler) -> None:
    @kind.pages.post(
        f"{BLOCK}/items", access=coach(kind.edit), query=Search(), form=_Planned(only=_ASKED), on=workout_page
    )
    async def add_exercise(
        ctx: Context, block_id: ObjectId, query: dict[str, Any], form: dict[str, Any], **owner: ObjectId
    ) -> Redirect:
        """Put an exercise at the end of a workout, or of a circuit in it."""
        plan_owner, here = kind.owner_of(owner), kind.address(owner, block_id)
        exercise_id, sets, chosen = str(form["exerciseId"]), _sets(form), form["circuit"]
        entry = {"exerciseId": exercise_id, "sets": sets, "instructions": None}
        if not chosen:
            item = {"type": "EXERCISE", "exerciseId": exercise_id, "exerciseSets": sets}
            return await _added(ctx, plan_owner, more_of(here, query), block_id, item)
        if chosen == _NEW_CIRCUIT:
            new = {"type": "CIRCUIT", "circuitName": "Circuit", "rounds": 3, "circuitExercises": [entry]}
            made = await item_service.add_item(ctx, plan_owner, block_id, NEW_ITEM.load(new))
            return Redirect(
                f"{here}/items/{made['_id']}", "The circuit is made. What is it called, and how many rounds?"
            )
        block = await workouts.read(ctx, plan_owner, block_id)
        circuit = next((item for item in circuits.of(block) if str(item["_id"]) == chosen), None)
        if circuit is None:
            raise NotFound("circuit")
        await circuits.rewrite(ctx, plan_owner, block, circuit, [*circuits.as_sent(circuit), entry])
        return Redirect(more_of(here, query), f"It is added to {circuit['circuitName']}.")


def _declare_others(kind: Kind, workout_page: Handler) -> None:
    """Each kind of item but exercises: where its form goes, the form, and the item as it is sent."""

    def declare_one(path: str, name: str, form: Schema, item_of: Callable[[Document], Document]) -> None:
        async def add(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Redirect:
            here = f"{kind.address(owner, block_id)}#more"
            return await _added(ctx, kind.owner_of(owner), here, block_id, item_of(form))

        add.__name__ = name
        kind.pages.post(f"{BLOCK}/{path}", access=coach(kind.edit), form=form, on=workout_page)(add)

    declare_one("tasks", "add_task", NewTaskFields(), lambda sent: {"type": "TASK", "taskFields": sent})
    declare_one(
        "reminders", "add_reminder", NewReminderFields(), lambda sent: {"type": "REMINDER", "reminderFields": sent}
    )
    declare_one(
        *("forms", "add_form", _NewForm()),
        lambda sent: {"type": "FORM", "form": {"formId": str(sent["formId"])}},
    )
    declare_one(
        *("metrics", "add_metrics", _NewMetrics()),
        lambda sent: {"type": "METRICS", "metricsFields": {"metricsSetId": str(sent["metricsSetId"])}},
    )


async def _added(ctx: Context, plan_owner: Owner, here: str, block_id: ObjectId, item: Document) -> Redirect:
    """Put an item, as it is sent, at the end of a workout, and go to the address `here`."""
    stored = await item_service.add_item(ctx, plan_owner, block_id, NEW_ITEM.load(item))
    return Redirect(here, f"{described(stored, ctx.caller.company.load_unit)['title']} is added.")


def _sets(form: Document) -> list[Document]:
    """As many equal sets as the form says."""
    ends = {name: form[name] for name in ("minPlannedReps", "maxPlannedReps", "rest")}
    load = {} if form["load"] is None else {"load": form["load"]}
    kind = "reps_load" if load else "reps"
    return [{"type": kind, "index": at + 1, **ends, **load} for at in range(form["sets"])]

"""The records of the library: exercises, metric sets, forms and workout templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.auth.access import CUSTOMERS, EXERCISES, FORMS, METRICS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import BadRequest, invalid_field, require_by_id
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, take
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.core.validation import Choice, Identifier, Input, Integer, ListOf, Text, Version, patch_of
from coaching_service.library.exercises import customization, listing
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import (
    ADDED,
    ASSISTANCE,
    LEVELS,
    LOAD,
    MINE,
    PUBLIC,
    TYPES,
    ExerciseChange,
    ExerciseDetails,
    ExerciseOverride,
    NewExercise,
)
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import (
    QUESTION_LENGTH,
    WITH_OPTIONS,
    Form,
    FormName,
    QuestionDetails,
    QuestionInput,
    QuestionType,
)
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.library.metric_sets.models import MetricSet, MetricSetChange, MetricSetDetails, NewMetric
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.training.templates import service as templates
from coaching_service.training.templates.models import TemplateChange, TemplateDetails
from coaching_service.training.templates.service import TemplatePlan
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect, Search, list_url
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages
from coaching_service.web.views.workout.cards import ItemsText, add_text

pages = Pages("/app")

_exercises = pages.below("/exercises")
_exercise = _exercises.below("/{exerciseId}")
_PAGE_SIZE = 24
_LOAD_TYPES = (
    (LOAD, "Weight: more is better"),
    (ASSISTANCE, "Assistance: less help is better"),
    (ADDED, "Added to the body's weight, as in pull-ups and dips"),
)
_TYPE_FILTERS = [
    ("", "All"),
    (MINE, "My exercises"),
    (PUBLIC, "Shared"),
    *((name, name.capitalize()) for name in TYPES),
]


class _Search(Search):
    type: Annotated[str | None, Choice(MINE, PUBLIC, *TYPES)]


class _Exercise(ExerciseDetails):
    """An exercise; the muscles that it trains are in two lists."""

    primaryMuscles: Annotated[list[ObjectId], ListOf(Identifier(), maximum=23), Default(list)]
    secondaryMuscles: Annotated[list[ObjectId], ListOf(Identifier(), maximum=23), Default(list)]


class _ExerciseChange(_Exercise):
    version: Annotated[int, Version()]


def _form_options() -> Document:
    return {"types": TYPES, "levels": LEVELS, "load_types": _LOAD_TYPES, "muscles": exercises.list_muscle_groups()}


def _to_input(form: _Exercise) -> Document:
    """Return the form values as the service accepts them. Raises InvalidFields for a muscle in both lists."""
    primary, secondary = form["primaryMuscles"], form["secondaryMuscles"]
    if set(primary) & set(secondary):
        raise invalid_field("secondaryMuscles", "must not contain a primary muscle", code="DUPLICATE")
    roles = {"primary": primary, "secondary": secondary}
    details = {name: value for name, value in form.items() if name not in ("primaryMuscles", "secondaryMuscles")}
    muscles = [{"_id": muscle_id, "role": role} for role, ids in roles.items() for muscle_id in ids]
    return {**details, "muscleGroups": muscles}


@_exercises.get("", access=coach(EXERCISES.VIEW), template="library/exercises.html")
async def exercises_page(ctx: Context, query: _Search) -> dict[str, Any]:
    """The exercises available to the company."""
    page = await listing.list_exercises(
        ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"], kind=query["type"] or None
    )
    return {"page": page, "query": query, "type_filters": _TYPE_FILTERS, "page_url": list_url(_exercises.prefix, query)}


@_exercises.get("/new", access=coach(EXERCISES.CREATE), template="library/new_exercise.html")
async def new_exercise_page(_: Context) -> dict[str, Any]:
    """The form for a new exercise."""
    return _form_options()


@_exercises.post("/new", access=coach(EXERCISES.CREATE), on=new_exercise_page)
async def create_exercise(ctx: Context, form: _Exercise) -> Redirect:
    """Create an exercise of the company."""
    exercise = await exercises.create(ctx, cast("NewExercise", _to_input(form) | {"media": []}))
    return Redirect(f"/app/exercises/{exercise['_id']}", f"{exercise['name']} added to your library.")


@_exercises.get("/{exerciseId}", access=coach(EXERCISES.VIEW), template="library/exercise.html")
async def exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """One exercise."""
    exercise = await exercises.get(ctx, exercise_id)
    may_change = CUSTOMERS.EDIT in ctx.caller.permissions
    planned_for = await service.list_planned_for(ctx, exercise_id) if may_change else []
    return {"exercise": exercise, "is_own": exercise["companyId"] is not None, "planned_count": len(planned_for)}


@_exercises.get("/{exerciseId}/edit", access=coach(EXERCISES.EDIT), template="library/edit_exercise.html")
async def edit_exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form to change an exercise."""
    exercise = await exercises.get(ctx, exercise_id)
    return {"exercise": exercise, "version": exercise["version"], **_form_options()}


@_exercises.post("/{exerciseId}/edit", access=coach(EXERCISES.EDIT), on=edit_exercise_page)
async def update_exercise(ctx: Context, exercise_id: ObjectId, form: _ExerciseChange) -> Redirect:
    """Change an exercise of the company; workouts that contain it show the change."""
    await exercises.update(ctx, exercise_id, cast("ExerciseChange", _to_input(form)))
    return Redirect(f"/app/exercises/{exercise_id}", "Changes saved.")


@_exercises.post("/{exerciseId}/delete", access=coach(EXERCISES.DELETE), on=exercise_page, deletes=True)
async def delete_exercise(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Delete an exercise of the company; workouts that contain it keep it."""
    await exercises.delete(ctx, exercise_id)
    return Redirect("/app/exercises", "Exercise deleted.")


def _exercise_path(exercise_id: ObjectId) -> str:
    return f"/app/exercises/{exercise_id}"


@_exercise.post(
    "/media",
    access=coach(EXERCISES.EDIT),
    form=MultipartBody("file", MEDIA_TYPES, size_limit="attachment"),
    on=exercise_page,
)
async def add_media(ctx: Context, exercise_id: ObjectId, file: StoredFile) -> Redirect:
    """Add a picture or video."""
    await customization.add_media(ctx, exercise_id, file)
    return Redirect(_exercise_path(exercise_id), "File added.")


@_exercise.post("/media/{mediaId}/delete", access=coach(EXERCISES.EDIT), on=exercise_page, deletes=True)
async def delete_media(ctx: Context, exercise_id: ObjectId, media_id: ObjectId) -> Redirect:
    """Delete a picture, video or link."""
    await customization.remove_media(ctx, exercise_id, media_id)
    return Redirect(_exercise_path(exercise_id), "Deleted.")


@_exercise.get("/override", access=coach(EXERCISES.EDIT), template="library/exercise_override.html")
async def override_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form for the company's own texts of a shared exercise."""
    exercise, override = await customization.read_with_override(ctx, exercise_id)
    return {"exercise": exercise, "override": override, "version": exercise["version"]}


@_exercise.post("/override", access=coach(EXERCISES.EDIT), on=override_page)
async def save_override(ctx: Context, exercise_id: ObjectId, form: ExerciseOverride) -> Redirect:
    """Save the company's own texts of a shared exercise."""
    await customization.set_override(ctx, exercise_id, form)
    return Redirect(_exercise_path(exercise_id), "Changes saved.")


@_exercise.post("/override/delete", access=coach(EXERCISES.EDIT), on=override_page, deletes=True)
async def delete_override(ctx: Context, exercise_id: ObjectId) -> Redirect:
    """Remove all that the company has added to a shared exercise."""
    await customization.remove_override(ctx, exercise_id)
    return Redirect(_exercise_path(exercise_id), "Your changes are removed.")


# --- Settings: metric sets, the metrics that are recorded for clients and their units ---------------------------------


_metric_sets = pages.below("/settings/metric-sets")
_MAX_METRICS = 100


class _NewMetricSet(MetricSetDetails):
    metricName: str
    metricUnitId: ObjectId


class _MetricSetUpdate(MetricSetDetails):
    version: Annotated[int, Version()]


class _MetricName(TypedDict):
    metricId: ObjectId
    name: str


def _set_path(set_id: ObjectId) -> str:
    return f"/app/settings/metric-sets/{set_id}"


def _unit_options() -> list[tuple[str, str]]:
    return [(str(unit["_id"]), f"{unit['name']} ({unit['shortName']})") for unit in metric_sets.list_units()]


@_metric_sets.get("", access=coach(METRICS.VIEW), template="settings/metric_sets.html")
async def metric_sets_page(ctx: Context) -> dict[str, Any]:
    """The metric sets, by name."""
    return {"sets": await metric_sets.list_all(ctx), "units": _unit_options()}


@_metric_sets.post("", access=coach(METRICS.CREATE), on=metric_sets_page)
async def create_metric_set(ctx: Context, form: _NewMetricSet) -> Redirect:
    """Create a set with its first metric."""
    metric: NewMetric = {"name": form["metricName"], "metricUnitId": form["metricUnitId"]}
    metric_set = await metric_sets.create(ctx, {**take(MetricSetDetails, form), "metrics": [metric]})
    return Redirect(_set_path(metric_set["_id"]), f"{metric_set['name']} created. Add more metrics to it here.")


@_metric_sets.get("/{metricsSetId}", access=coach(METRICS.VIEW), template="settings/metric_set.html")
async def metric_set_page(ctx: Context, metrics_set_id: ObjectId) -> dict[str, Any]:
    """One metric set and its metrics."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    return {"set": metric_set, "version": metric_set["version"], "units": _unit_options()}


@_metric_sets.post("/{metricsSetId}", access=coach(METRICS.EDIT), form=_MetricSetUpdate, on=metric_set_page)
async def update_metric_set(ctx: Context, metrics_set_id: ObjectId, form: MetricSetChange) -> Redirect:
    """Rename a set, and set whether it is assigned to new clients automatically."""
    await metric_sets.update(ctx, metrics_set_id, form)
    return Redirect(_set_path(metrics_set_id), "Changes saved.")


@_metric_sets.post(
    "/{metricsSetId}/metrics", access=coach(METRICS.EDIT), form=input_of(NewMetric)(exclude=["_id"]), on=metric_set_page
)
async def add_metric(ctx: Context, metrics_set_id: ObjectId, form: NewMetric) -> Redirect:
    """Add a metric to a set."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    if len(metric_set["metrics"]) >= _MAX_METRICS:
        raise BadRequest(f"A set must not hold more than {_MAX_METRICS} metrics")
    await _save_metrics(ctx, metric_set, [*_to_metrics(metric_set), form])
    return Redirect(_set_path(metrics_set_id), f"{form['name']} added.")


@_metric_sets.post("/{metricsSetId}/names", access=coach(METRICS.EDIT), on=metric_set_page)
async def rename_metric(ctx: Context, metrics_set_id: ObjectId, form: _MetricName) -> Redirect:
    """Rename a metric; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    metrics = _to_metrics(metric_set)
    require_by_id(metrics, form["metricId"], "metric")["name"] = form["name"]
    await _save_metrics(ctx, metric_set, metrics)
    return Redirect(_set_path(metrics_set_id), "Metric renamed.")


@_metric_sets.confirm(
    "/{metricsSetId}/metrics/{metricId}/remove",
    access=coach(METRICS.EDIT),
    template="settings/remove_metric.html",
    deletes=True,
)
async def remove_metric(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> ConfirmedAction:
    """Remove a metric from its set; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    removed = require_by_id(metric_set["metrics"], metric_id, "metric")

    async def remove() -> None:
        if len(metric_set["metrics"]) == 1:
            raise BadRequest("A set needs at least one metric: delete the set instead")
        remaining = [metric for metric in _to_metrics(metric_set) if metric["_id"] != metric_id]
        await _save_metrics(ctx, metric_set, remaining)

    return ConfirmedAction(
        {"set": metric_set, "metric": removed}, remove, Redirect(_set_path(metrics_set_id), "Metric removed.")
    )


def _to_metrics(metric_set: MetricSet) -> list[NewMetric]:
    """Return the metrics of a set as the service accepts them."""
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnitId": metric["metricUnit"]["_id"]}
        for metric in metric_set["metrics"]
    ]


async def _save_metrics(ctx: Context, metric_set: MetricSet, metrics: list[NewMetric]) -> None:
    await metric_sets.update(ctx, metric_set["_id"], {"metrics": metrics, "version": metric_set["version"]})


@_metric_sets.confirm(
    "/{metricsSetId}/delete", access=coach(METRICS.DELETE), template="settings/delete_metric_set.html", deletes=True
)
async def delete_metric_set(ctx: Context, metrics_set_id: ObjectId) -> ConfirmedAction:
    """Delete a set; recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    done = Redirect(_metric_sets.prefix, f"{metric_set['name']} deleted.")
    return ConfirmedAction({"set": metric_set}, partial(metric_sets.delete, ctx, metrics_set_id), done)


# --- Settings: forms, with their questions in the order in which clients answer them ----------------------------------


_forms = pages.below("/settings/forms")
_MAX_QUESTIONS, _BLANK_ROWS = 100, 3
_LABELS: dict[QuestionType, str] = {
    "text": "Text",
    "number": "Number",
    "rating": "Rating from 1 to 10",
    "choice": "One of several options",
    "multi": "Any of several options",
}


class _QuestionRow(QuestionDetails):
    """A question as it is edited; without a label it is left out, with `out` it is removed."""

    _id: ObjectId | None
    position: Annotated[int | None, Integer(minimum=1, maximum=1_000)]
    out: Annotated[bool, Default(False)]


class _RowChecks(Input):
    label = Text(max_length=QUESTION_LENGTH, allow_blank=True, load_default="")

    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a choice without options."""
        if data["label"] and not data["out"] and data["type"] in WITH_OPTIONS and not data["options"]:
            raise ValidationError("must have options, one in each line", "options")


_ROWS = ListOf(fields.Nested(input_of(_QuestionRow, _RowChecks)), maximum=_MAX_QUESTIONS + _BLANK_ROWS)


class _NewForm(FormName):
    questions: Annotated[list[_QuestionRow], _ROWS, Default(list)]


class _FormUpdate(_NewForm):
    version: Annotated[int, Version()]


class _Row(QuestionDetails):
    """A row of the table of questions; `_id` is empty for a new question."""

    _id: str


_BLANK: _Row = {"_id": "", "label": "", "type": "text", "options": [], "required": False}


def _form_path(form_id: ObjectId) -> str:
    return f"{_forms.prefix}/{form_id}"


def _to_rows(form: Form | None) -> list[_Row]:
    questions = form["questions"] if form is not None else []
    rows: list[_Row] = [{**question, "_id": str(question["_id"])} for question in questions]
    return [*rows, *[_BLANK] * _BLANK_ROWS]


def _to_questions(rows: Sequence[_QuestionRow]) -> list[QuestionInput]:
    """Return the questions of rows in the order of their positions. Raises InvalidFields without any."""
    used = [row for row in rows if row["label"] and not row["out"]]
    if not used:
        raise invalid_field("questions.0.label", "should not be empty: a form has at least one question")
    questions: list[QuestionInput] = []
    for row in sorted(used, key=lambda row: row["position"] or _MAX_QUESTIONS + _BLANK_ROWS):
        options = row["options"] if row["type"] in WITH_OPTIONS else []
        question = take(QuestionInput, {**row, "options": options})
        if row["_id"] is None:
            del question["_id"]
        questions.append(question)
    return questions


@_forms.get("", access=coach(FORMS.VIEW), template="settings/forms.html")
async def forms_page(ctx: Context) -> dict[str, Any]:
    """The forms, by name."""
    return {"forms": await forms.list_all(ctx), "rows": _to_rows(None), "types": list(_LABELS.items())}


@_forms.post("", access=coach(FORMS.CREATE), on=forms_page)
async def create_form(ctx: Context, form: _NewForm) -> Redirect:
    """Create a form."""
    created = await forms.create(ctx, {"name": form["name"], "questions": _to_questions(form["questions"])})
    return Redirect(_form_path(created["_id"]), f"{created['name']} created.")


@_forms.get("/{formId}", access=coach(FORMS.VIEW), template="settings/form.html")
async def form_page(ctx: Context, form_id: ObjectId) -> dict[str, Any]:
    """A form: its questions as clients see them, and the fields to change them."""
    form = await forms.get(ctx, form_id)
    return {
        "questionnaire": form,
        "version": form["version"],
        "rows": _to_rows(form),
        "types": list(_LABELS.items()),
    }


@_forms.post("/{formId}", access=coach(FORMS.EDIT), on=form_page)
async def update_form(ctx: Context, form_id: ObjectId, form: _FormUpdate) -> Redirect:
    """Change a form; what is scheduled already keeps its questions."""
    questions = _to_questions(form["questions"])
    await forms.update(ctx, form_id, {"name": form["name"], "questions": questions, "version": form["version"]})
    return Redirect(_form_path(form_id), "Changes saved.")


@_forms.confirm("/{formId}/delete", access=coach(FORMS.DELETE), template="settings/delete_form.html", deletes=True)
async def delete_form(ctx: Context, form_id: ObjectId) -> ConfirmedAction:
    """Delete a form; scheduled ones and answers stay."""
    form = await forms.get(ctx, form_id)
    done = Redirect(_forms.prefix, f"{form['name']} deleted.")
    return ConfirmedAction({"questionnaire": form}, partial(forms.delete, ctx, form_id), done)


# --- Workout templates: the list, new ones, and each one in the editor of the workouts of clients and programs --------


_templates = pages.below("/templates")
_template = _templates.below("/{templateId}", locks="template")
_CHANGE_FORM = patch_of(input_of(TemplateDetails), name="TemplateForm")


class _NewTemplate(TemplateDetails, ItemsText):
    """A template, and its items as text."""


@_templates.get("", access=coach(PROGRAMS.VIEW), template="library/templates.html")
async def templates_page(ctx: Context, query: Search) -> dict[str, Any]:
    """The templates, by name."""
    page = await templates.list_page(ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"])
    unit = ctx.caller.company.load_unit
    return {
        "page": page,
        "titles": {
            each["_id"]: [describe_item(item, unit)["title"] for item in each["items"]] for each in page["docs"]
        },
        "query": query,
        "page_url": list_url(_templates.prefix, query),
    }


@_templates.post("", access=coach(PROGRAMS.CREATE), on=templates_page)
async def create_template(ctx: Context, form: _NewTemplate) -> Redirect:
    """Create a template, with the items of a text if there is one."""
    template = await templates.create(ctx, {**take(TemplateDetails, form), "items": []})
    plan, text = TemplatePlan(template["_id"]), form["text"]
    _, remarks = await add_text(ctx, plan, template["_id"], text)
    return Redirect(f"{_templates.prefix}/{template['_id']}", f"{template['name']} created.{remarks}")


async def _layout_variables(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    return {"template": await templates.get(ctx, template_id)}


declare_workout_pages(
    WorkoutOwnerPages(
        pages=_template,
        owner_type=TemplatePlan,
        owner_parameter="template_id",
        view=PROGRAMS.VIEW,
        edit=PROGRAMS.EDIT,
        layout="library/template_layout.html",
        layout_variables=_layout_variables,
        overview_path=lambda *_: _templates.prefix,
        is_single=True,
    )
)


@_template.get("/edit", access=coach(PROGRAMS.EDIT), template="library/edit_template.html")
async def edit_template_page(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    """The form to change the name, type and tags of a template."""
    template = await templates.get(ctx, template_id)
    return {"template": template, "version": template["version"]}


@_template.post("/edit", access=coach(PROGRAMS.EDIT), form=_CHANGE_FORM, on=edit_template_page)
async def update_template(ctx: Context, template_id: ObjectId, form: TemplateChange) -> Redirect:
    """Change the name, type and tags of a template."""
    await templates.update(ctx, template_id, form)
    return Redirect(f"{_templates.prefix}/{template_id}", "Changes saved.")


@_template.confirm("/delete", access=coach(PROGRAMS.DELETE), template="library/delete_template.html", deletes=True)
async def delete_template(ctx: Context, template_id: ObjectId) -> ConfirmedAction:
    """Delete a template."""
    template = await templates.get(ctx, template_id)
    done = Redirect(_templates.prefix, f"{template['name']} deleted.")
    return ConfirmedAction({"template": template}, partial(templates.delete, ctx, template_id), done)

"""The records of the library: exercises, metric sets, forms and workout templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import auth, validation
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import BadRequest, invalid_field, require_by_id
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, take
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.library import forms, message_templates, metric_sets
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import service as exercises
from coaching_service.library.metric_sets import MetricSet, MetricSetDetails, NewMetric
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.training import templates
from coaching_service.training.templates import TemplateDetails, TemplatePlan
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web import pages as web_pages
from coaching_service.web.records import Records
from coaching_service.web.views import exercise_picker
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages
from coaching_service.web.views.workout.cards import ItemsText, add_text

pages = web_pages.Pages("/app")

_exercises = Records(pages, "/exercises", "exerciseId", "exercise", auth.EXERCISES, exercises.get, folder="library")
_PAGE_SIZE = 24
_LOAD_TYPES = (
    (exercise_models.LOAD, "Weight: more is better"),
    (exercise_models.ASSISTANCE, "Assistance: less help is better"),
    (exercise_models.ADDED, "Added to the body's weight, as in pull-ups and dips"),
)
_TYPE_FILTERS = [
    ("", "All"),
    (exercise_models.MINE, "My exercises"),
    (exercise_models.PUBLIC, "Shared"),
    *((name, name.capitalize()) for name in exercise_models.TYPES),
]


class _Search(web_pages.Search):
    type: Annotated[str | None, validation.Choice(exercise_models.MINE, exercise_models.PUBLIC, *exercise_models.TYPES)]


class _Exercise(exercise_models.ExerciseDetails):
    """An exercise; the muscles that it trains are in two lists."""

    primaryMuscles: Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=23), Default(list)]
    secondaryMuscles: Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=23), Default(list)]


class _ExerciseChange(_Exercise):
    version: Annotated[int, validation.Version()]


def _form_options() -> Document:
    return {
        "types": exercise_models.TYPES,
        "levels": exercise_models.LEVELS,
        "load_types": _LOAD_TYPES,
        "muscles": exercises.list_muscle_groups(),
    }


def _to_input(form: _Exercise) -> Document:
    """Return the form values as the service accepts them. Raises InvalidFields for a muscle in both lists."""
    primary, secondary = form["primaryMuscles"], form["secondaryMuscles"]
    if set(primary) & set(secondary):
        raise invalid_field("secondaryMuscles", "must not contain a primary muscle", code="DUPLICATE")
    roles = {"primary": primary, "secondary": secondary}
    details = {name: value for name, value in form.items() if name not in ("primaryMuscles", "secondaryMuscles")}
    muscles = [{"_id": muscle_id, "role": role} for role, ids in roles.items() for muscle_id in ids]
    return {**details, "muscleGroups": muscles}


@_exercises.list
async def exercises_page(ctx: Context, query: _Search) -> dict[str, Any]:
    """The exercises available to the company."""
    page = await exercises.list_exercises(
        ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"], kind=query["type"] or None
    )
    return {
        "page": page,
        "shown": [exercise_picker.describe_option(ctx, each, _exercises.path(each["_id"])) for each in page["docs"]],
        "query": query,
        "type_filters": _TYPE_FILTERS,
        "page_url": web_pages.list_url(_exercises.prefix, query),
    }


@_exercises.get("/new", access=auth.coach(auth.EXERCISES.CREATE), template="library/new_exercise.html")
async def new_exercise_page(_: Context) -> dict[str, Any]:
    """The form for a new exercise."""
    return _form_options()


@_exercises.create(
    "/new",
    on=new_exercise_page,
    form=MultipartBody("file", MEDIA_TYPES, _Exercise, size_limit="attachment", text_bytes=50_000),
    file_optional=True,
)
async def create_exercise(ctx: Context, form: _Exercise, file: StoredFile | None) -> web_pages.Redirect:
    """Create an exercise of the company, with a picture or video if there is one."""
    exercise = await exercises.create(ctx, cast("exercise_models.NewExercise", _to_input(form) | {"media": []}))
    if file is not None:
        await exercises.add_media(ctx, exercise["_id"], file)
    return web_pages.Redirect(_exercises.path(exercise["_id"]), f"{exercise['name']} added to your library.")


@_exercises.each.get("", access=auth.coach(auth.EXERCISES.VIEW), template="library/exercise.html")
async def exercise_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """One exercise."""
    exercise = await exercises.get(ctx, exercise_id)
    may_change = auth.CUSTOMERS.EDIT in ctx.caller.permissions
    planned_for = await service.list_planned_for(ctx, exercise_id) if may_change else []
    return {"exercise": exercise, "is_own": exercise["companyId"] is not None, "planned_count": len(planned_for)}


async def _update_exercise(ctx: Context, exercise_id: ObjectId, form: _ExerciseChange) -> None:
    """Change an exercise of the company; workouts that contain it show the change."""
    await exercises.update(ctx, exercise_id, cast("exercise_models.ExerciseChange", _to_input(form)))


_exercises.change(_ExerciseChange, _update_exercise, on=_exercises.page(lambda _: _form_options(), path="/edit"))


@_exercises.each.post("/delete", access=auth.coach(auth.EXERCISES.DELETE), on=exercise_page, deletes=True)
async def delete_exercise(ctx: Context, exercise_id: ObjectId) -> web_pages.Redirect:
    """Delete an exercise of the company; workouts that contain it keep it."""
    await exercises.delete(ctx, exercise_id)
    return web_pages.Redirect(_exercises.prefix, "Exercise deleted.")


@_exercises.each.post(
    "/media",
    access=auth.coach(auth.EXERCISES.EDIT),
    form=MultipartBody("file", MEDIA_TYPES, size_limit="attachment"),
    on=exercise_page,
)
async def add_media(ctx: Context, exercise_id: ObjectId, file: StoredFile) -> web_pages.Redirect:
    """Add a picture or video."""
    await exercises.add_media(ctx, exercise_id, file)
    return web_pages.Redirect(_exercises.path(exercise_id), "File added.")


@_exercises.each.post("/media/{mediaId}/delete", access=auth.coach(auth.EXERCISES.EDIT), on=exercise_page, deletes=True)
async def delete_media(ctx: Context, exercise_id: ObjectId, media_id: ObjectId) -> web_pages.Redirect:
    """Delete a picture, video or link."""
    await exercises.remove_media(ctx, exercise_id, media_id)
    return web_pages.Redirect(_exercises.path(exercise_id), "Deleted.")


@_exercises.each.get("/override", access=auth.coach(auth.EXERCISES.EDIT), template="library/exercise_override.html")
async def override_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form for the company's own texts of a shared exercise."""
    exercise, override = await exercises.read_with_override(ctx, exercise_id)
    return {"exercise": exercise, "override": override, "version": exercise["version"]}


@_exercises.each.post("/override", access=auth.coach(auth.EXERCISES.EDIT), on=override_page)
async def save_override(
    ctx: Context, exercise_id: ObjectId, form: exercise_models.ExerciseOverride
) -> web_pages.Redirect:
    """Save the company's own texts of a shared exercise."""
    await exercises.set_override(ctx, exercise_id, form)
    return web_pages.Redirect(_exercises.path(exercise_id), "Changes saved.")


@_exercises.each.post("/override/delete", access=auth.coach(auth.EXERCISES.EDIT), on=override_page, deletes=True)
async def delete_override(ctx: Context, exercise_id: ObjectId) -> web_pages.Redirect:
    """Remove all that the company has added to a shared exercise."""
    await exercises.remove_override(ctx, exercise_id)
    return web_pages.Redirect(_exercises.path(exercise_id), "Your changes are removed.")


# --- Settings: metric sets, the metrics that are recorded for clients and their units ---------------------------------


_metric_sets = Records(
    pages, "/settings/metric-sets", "metricsSetId", "metric_set", auth.METRICS, metric_sets.get, shown_as="set"
)
_MAX_METRICS = 100


class _NewMetricSet(MetricSetDetails):
    metricName: str
    metricUnitId: ObjectId


class _MetricSetUpdate(MetricSetDetails):
    version: Annotated[int, validation.Version()]


class _MetricName(TypedDict):
    metricId: ObjectId
    name: str


def _unit_options() -> list[tuple[str, str]]:
    return [(str(unit["_id"]), f"{unit['name']} ({unit['shortName']})") for unit in metric_sets.list_units()]


@_metric_sets.list
async def metric_sets_page(ctx: Context) -> dict[str, Any]:
    """The metric sets, by name."""
    return {"sets": await metric_sets.list_all(ctx), "units": _unit_options()}


@_metric_sets.create()
async def create_metric_set(ctx: Context, form: _NewMetricSet) -> web_pages.Redirect:
    """Create a set with its first metric."""
    metric: NewMetric = {"name": form["metricName"], "metricUnitId": form["metricUnitId"]}
    metric_set = await metric_sets.create(ctx, {**take(MetricSetDetails, form), "metrics": [metric]})
    return web_pages.Redirect(
        _metric_sets.path(metric_set["_id"]), f"{metric_set['name']} created. Add more metrics to it here."
    )


metric_set_page = _metric_sets.page(lambda _: {"units": _unit_options()})
_metric_sets.change(_MetricSetUpdate, metric_sets.update, on=metric_set_page)
_metric_sets.delete(metric_sets.delete)


@_metric_sets.each.post(
    "/metrics", access=auth.coach(auth.METRICS.EDIT), form=input_of(NewMetric)(exclude=["_id"]), on=metric_set_page
)
async def add_metric(ctx: Context, metrics_set_id: ObjectId, form: NewMetric) -> web_pages.Redirect:
    """Add a metric to a set."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    if len(metric_set["metrics"]) >= _MAX_METRICS:
        raise BadRequest(f"A set must not hold more than {_MAX_METRICS} metrics")
    await _save_metrics(ctx, metric_set, [*_to_metrics(metric_set), form])
    return web_pages.Redirect(_metric_sets.path(metrics_set_id), f"{form['name']} added.")


@_metric_sets.each.post("/names", access=auth.coach(auth.METRICS.EDIT), on=metric_set_page)
async def rename_metric(ctx: Context, metrics_set_id: ObjectId, form: _MetricName) -> web_pages.Redirect:
    """Rename a metric; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    metrics = _to_metrics(metric_set)
    require_by_id(metrics, form["metricId"], "metric")["name"] = form["name"]
    await _save_metrics(ctx, metric_set, metrics)
    return web_pages.Redirect(_metric_sets.path(metrics_set_id), "Metric renamed.")


@_metric_sets.each.confirm(
    "/metrics/{metricId}/remove",
    access=auth.coach(auth.METRICS.EDIT),
    template="settings/remove_metric.html",
    deletes=True,
)
async def remove_metric(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> web_pages.ConfirmedAction:
    """Remove a metric from its set; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    removed = require_by_id(metric_set["metrics"], metric_id, "metric")

    async def remove() -> None:
        if len(metric_set["metrics"]) == 1:
            raise BadRequest("A set needs at least one metric: delete the set instead")
        remaining = [metric for metric in _to_metrics(metric_set) if metric["_id"] != metric_id]
        await _save_metrics(ctx, metric_set, remaining)

    return web_pages.ConfirmedAction(
        {"set": metric_set, "metric": removed},
        remove,
        web_pages.Redirect(_metric_sets.path(metrics_set_id), "Metric removed."),
    )


def _to_metrics(metric_set: MetricSet) -> list[NewMetric]:
    """Return the metrics of a set as the service accepts them."""
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnitId": metric["metricUnit"]["_id"]}
        for metric in metric_set["metrics"]
    ]


async def _save_metrics(ctx: Context, metric_set: MetricSet, metrics: list[NewMetric]) -> None:
    await metric_sets.update(ctx, metric_set["_id"], {"metrics": metrics, "version": metric_set["version"]})


# --- Settings: forms, with their questions in the order in which clients answer them ----------------------------------


_forms = Records(pages, "/settings/forms", "formId", "form", auth.FORMS, forms.get, shown_as="questionnaire")
_MAX_QUESTIONS, _BLANK_ROWS = 100, 3
_LABELS: dict[forms.QuestionType, str] = {
    "text": "Text",
    "number": "Number",
    "rating": "Rating from 1 to 10",
    "choice": "One of several options",
    "multi": "Any of several options",
    "photo": "Photo",
}


class _QuestionRow(forms.QuestionDetails):
    """A question as it is edited; without a label it is left out, with `out` it is removed."""

    _id: ObjectId | None
    position: Annotated[int | None, validation.Integer(minimum=1, maximum=1_000)]
    out: Annotated[bool, Default(False)]


class _RowChecks(validation.Input):
    label = validation.Text(max_length=forms.QUESTION_LENGTH, allow_blank=True, load_default="")

    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a choice without options."""
        if data["label"] and not data["out"] and data["type"] in forms.WITH_OPTIONS and not data["options"]:
            raise ValidationError("must have options, one in each line", "options")


_ROWS = validation.ListOf(fields.Nested(input_of(_QuestionRow, _RowChecks)), maximum=_MAX_QUESTIONS + _BLANK_ROWS)


class _NewForm(forms.FormName):
    questions: Annotated[list[_QuestionRow], _ROWS, Default(list)]


class _FormUpdate(_NewForm):
    version: Annotated[int, validation.Version()]


class _Row(forms.QuestionDetails):
    """A row of the table of questions; `_id` is empty for a new question."""

    _id: str


_BLANK: _Row = {"_id": "", "label": "", "type": "text", "options": [], "required": False}


def _to_rows(form: forms.Form | None) -> list[_Row]:
    questions = form["questions"] if form is not None else []
    rows: list[_Row] = [{**question, "_id": str(question["_id"])} for question in questions]
    return [*rows, *[_BLANK] * _BLANK_ROWS]


def _to_questions(rows: Sequence[_QuestionRow]) -> list[forms.QuestionInput]:
    """Return the questions of rows in the order of their positions. Raises InvalidFields without any."""
    used = [row for row in rows if row["label"] and not row["out"]]
    if not used:
        raise invalid_field("questions.0.label", "should not be empty: a form has at least one question")
    questions: list[forms.QuestionInput] = []
    for row in sorted(used, key=lambda row: row["position"] or _MAX_QUESTIONS + _BLANK_ROWS):
        options = row["options"] if row["type"] in forms.WITH_OPTIONS else []
        question = take(forms.QuestionInput, {**row, "options": options})
        if row["_id"] is None:
            del question["_id"]
        questions.append(question)
    return questions


@_forms.list
async def forms_page(ctx: Context) -> dict[str, Any]:
    """The forms, by name."""
    return {"forms": await forms.list_all(ctx), "rows": _to_rows(None), "types": list(_LABELS.items())}


@_forms.create()
async def create_form(ctx: Context, form: _NewForm) -> web_pages.Redirect:
    """Create a form."""
    created = await forms.create(ctx, {"name": form["name"], "questions": _to_questions(form["questions"])})
    return web_pages.Redirect(_forms.path(created["_id"]), f"{created['name']} created.")


async def _update_form(ctx: Context, form_id: ObjectId, form: _FormUpdate) -> None:
    """Change a form; what is scheduled already keeps its questions."""
    questions = _to_questions(form["questions"])
    await forms.update(ctx, form_id, {"name": form["name"], "questions": questions, "version": form["version"]})


_form_page = _forms.page(lambda form: {"rows": _to_rows(form), "types": list(_LABELS.items())})
_forms.change(_FormUpdate, _update_form, on=_form_page)
_forms.delete(forms.delete)


# --- Workout templates: the list, new ones, and each one in the editor of the workouts of clients and programs --------


_message_templates = Records(
    pages,
    "/settings/message-templates",
    "messageTemplateId",
    "message_template",
    auth.coach(auth.CUSTOMERS.EDIT),
    message_templates.get,
    shown_as="template",
)


class _MessageTemplateUpdate(message_templates.NewMessageTemplate):
    version: Annotated[int, validation.Version()]


@_message_templates.list
async def message_templates_page(ctx: Context) -> dict[str, Any]:
    """The message templates, by name, with a form for a new one."""
    return {"templates": await message_templates.list_all(ctx)}


@_message_templates.create()
async def create_message_template(ctx: Context, form: message_templates.NewMessageTemplate) -> web_pages.Redirect:
    """Create a message template."""
    template = await message_templates.create(ctx, form)
    return web_pages.Redirect(_message_templates.prefix, f"{template['name']} created.")


_message_templates.change(_MessageTemplateUpdate, message_templates.update, on=_message_templates.page())
_message_templates.delete(message_templates.delete)


_templates = Records(
    pages, "/templates", "templateId", "template", auth.PROGRAMS, templates.get, folder="library", locks="template"
)
_CHANGE_FORM = validation.patch_of(input_of(TemplateDetails), name="TemplateForm")


class _NewTemplate(TemplateDetails, ItemsText):
    """A template, and its items as text."""


@_templates.list
async def templates_page(ctx: Context, query: web_pages.Search) -> dict[str, Any]:
    """The templates, by name."""
    page = await templates.list_page(ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"])
    unit = ctx.caller.company.load_unit
    return {
        "page": page,
        "titles": {
            each["_id"]: [describe_item(item, unit)["title"] for item in each["items"]] for each in page["docs"]
        },
        "query": query,
        "page_url": web_pages.list_url(_templates.prefix, query),
    }


@_templates.create()
async def create_template(ctx: Context, form: _NewTemplate) -> web_pages.Redirect:
    """Create a template, with the items of a text if there is one."""
    template = await templates.create(ctx, {**take(TemplateDetails, form), "items": []})
    plan, text = TemplatePlan(template["_id"]), form["text"]
    _, remarks = await add_text(ctx, plan, template["_id"], text)
    return web_pages.Redirect(_templates.path(template["_id"]), f"{template['name']} created.{remarks}")


async def _layout_variables(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    return {"template": await templates.get(ctx, template_id)}


declare_workout_pages(
    WorkoutOwnerPages(
        pages=_templates.each,
        owner_type=TemplatePlan,
        owner_parameter="template_id",
        view=auth.PROGRAMS.VIEW,
        edit=auth.PROGRAMS.EDIT,
        layout="library/template_layout.html",
        layout_variables=_layout_variables,
        overview_path=lambda *_: _templates.prefix,
        is_single=True,
    )
)


_templates.change(_CHANGE_FORM, templates.update, on=_templates.page(path="/edit"))
_templates.delete(templates.delete)

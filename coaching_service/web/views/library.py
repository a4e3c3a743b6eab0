"""The records of the library: exercises, metric sets, forms and workout templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import auth, validation
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import BadRequest, invalid_field, require_by_id
from coaching_service.core.fields import Default, input_of, take
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MEDIA_TYPES
from coaching_service.library import forms, message_templates, metric_sets
from coaching_service.library.exercises import models as exercise_models
from coaching_service.library.exercises import service as exercises
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.training import templates
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web import pages as web_pages
from coaching_service.web.views.train import calendar
from coaching_service.web.views.workout.cards import ItemsText, add_text
from coaching_service.web.views.workout.editing import WorkoutOwnerPages
from coaching_service.web.views.workout.workout_page import declare_workout_pages

pages = web_pages.Pages("/app")

_exercises = web_pages.Records(
    pages, "/exercises", "exerciseId", "exercise", auth.EXERCISES, exercises.get, folder="library"
)
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
        "shown": [calendar.describe_option(ctx, each, _exercises.path(each["_id"])) for each in page["docs"]],
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
    planned_for = await customer_bulk.list_planned_for(ctx, exercise_id) if may_change else []
    return {"exercise": exercise, "is_own": exercise["companyId"] is not None, "planned_count": len(planned_for)}


_exercises.change(
    _Exercise,
    lambda ctx, exercise_id, form: exercises.update(ctx, exercise_id, cast("Any", _to_input(form))),
    on=_exercises.page(lambda _: _form_options(), path="/edit"),
)
_of_exercise = partial(_exercises.each.act, on=exercise_page, access=auth.coach(auth.EXERCISES.EDIT))
_file = MultipartBody("file", MEDIA_TYPES, size_limit="attachment")
_of_exercise("/media", "add_media", exercises.add_media, "File added.", form=_file)
_of_exercise("/media/{mediaId}/delete", "delete_media", exercises.remove_media, "Deleted.", deletes=True)
_exercises.each.act(
    "/delete",
    "delete_exercise",
    exercises.delete,
    "Exercise deleted.",
    access=auth.coach(auth.EXERCISES.DELETE),
    on=exercise_page,
    to=_exercises.prefix,
    deletes=True,
)


@_exercises.each.get("/override", access=auth.coach(auth.EXERCISES.EDIT), template="library/exercise_override.html")
async def override_page(ctx: Context, exercise_id: ObjectId) -> dict[str, Any]:
    """The form for the company's own texts of a shared exercise."""
    exercise, override = await exercises.read_with_override(ctx, exercise_id)
    return {"exercise": exercise, "override": override, "version": exercise["version"]}


_override = partial(_of_exercise, on=override_page, to=_exercises.each.prefix)
_saved = {"notice": "Changes saved.", "form": exercise_models.ExerciseOverride}
_override("/override", "save_override", exercises.set_override, **_saved)
_removed = "Your changes are removed."
_override("/override/delete", "delete_override", exercises.remove_override, _removed, deletes=True)


# --- Settings: metric sets, the metrics that are recorded for clients and their units ---------------------------------


_metric_sets = web_pages.Records(
    pages, "/settings/metric-sets", "metricsSetId", "metric_set", auth.METRICS, metric_sets.get, shown_as="set"
)
_MAX_METRICS = 100


class _NewMetricSet(metric_sets.MetricSetDetails):
    metricName: str
    metricUnitId: ObjectId


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
    metric: metric_sets.NewMetric = {"name": form["metricName"], "metricUnitId": form["metricUnitId"]}
    metric_set = await metric_sets.create(ctx, {**take(metric_sets.MetricSetDetails, form), "metrics": [metric]})
    return web_pages.Redirect(
        _metric_sets.path(metric_set["_id"]), f"{metric_set['name']} created. Add more metrics to it here."
    )


metric_set_page = _metric_sets.page(lambda _: {"units": _unit_options()})
_metric_sets.change(metric_sets.MetricSetDetails, metric_sets.update, on=metric_set_page)
_metric_sets.delete(metric_sets.delete)


@_metric_sets.each.post(
    "/metrics",
    access=auth.coach(auth.METRICS.EDIT),
    form=input_of(metric_sets.NewMetric)(exclude=["_id"]),
    on=metric_set_page,
)
async def add_metric(ctx: Context, metrics_set_id: ObjectId, form: metric_sets.NewMetric) -> web_pages.Redirect:
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


async def _remove_metric(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> None:
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    if len(metric_set["metrics"]) == 1:
        raise BadRequest("A set needs at least one metric: delete the set instead")
    remaining = [metric for metric in _to_metrics(metric_set) if metric["_id"] != metric_id]
    await _save_metrics(ctx, metric_set, remaining)


@_metric_sets.each.confirm(
    "/metrics/{metricId}/remove",
    _remove_metric,
    "Metric removed.",
    to=_metric_sets.each.prefix,
    access=auth.coach(auth.METRICS.EDIT),
    template="settings/remove_metric.html",
)
async def remove_metric(ctx: Context, metrics_set_id: ObjectId, metric_id: ObjectId) -> dict[str, Any]:
    """Remove a metric from its set; its recorded values stay."""
    metric_set = await metric_sets.get(ctx, metrics_set_id)
    return {"set": metric_set, "metric": require_by_id(metric_set["metrics"], metric_id, "metric")}


def _to_metrics(metric_set: metric_sets.MetricSet) -> list[metric_sets.NewMetric]:
    """Return the metrics of a set as the service accepts them."""
    return [
        {"_id": metric["_id"], "name": metric["name"], "metricUnitId": metric["metricUnit"]["_id"]}
        for metric in metric_set["metrics"]
    ]


async def _save_metrics(ctx: Context, metric_set: metric_sets.MetricSet, metrics: list[metric_sets.NewMetric]) -> None:
    await metric_sets.update(ctx, metric_set["_id"], {"metrics": metrics, "version": metric_set["version"]})


# --- Settings: forms, with their questions in the order in which clients answer them ----------------------------------


_forms = web_pages.Records(pages, "/settings/forms", "formId", "form", auth.FORMS, forms.get, shown_as="questionnaire")
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


_BLANK = {"_id": "", "label": "", "type": "text", "options": [], "required": False}


def _to_rows(questions: Sequence[forms.Question]) -> list[dict[str, Any]]:
    return [*({**each, "_id": str(each["_id"])} for each in questions), *[_BLANK] * _BLANK_ROWS]


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
    return {"forms": await forms.list_all(ctx), "rows": _to_rows([]), "types": list(_LABELS.items())}


@_forms.create()
async def create_form(ctx: Context, form: _NewForm) -> web_pages.Redirect:
    """Create a form."""
    created = await forms.create(ctx, {"name": form["name"], "questions": _to_questions(form["questions"])})
    return web_pages.Redirect(_forms.path(created["_id"]), f"{created['name']} created.")


_forms.change(
    _NewForm,
    lambda ctx, form_id, form: forms.update(ctx, form_id, form | {"questions": _to_questions(form["questions"])}),
    on=_forms.page(lambda form: {"rows": _to_rows(form["questions"]), "types": list(_LABELS.items())}),
)
_forms.delete(forms.delete)


# --- Workout templates: the list, new ones, and each one in the editor of the workouts of clients and programs --------


_message_templates = web_pages.Records(
    pages,
    "/settings/message-templates",
    "messageTemplateId",
    "message_template",
    auth.coach(auth.CUSTOMERS.EDIT),
    message_templates.get,
    shown_as="template",
)


@_message_templates.list
async def message_templates_page(ctx: Context) -> dict[str, Any]:
    """The message templates, by name, with a form for a new one."""
    return {"templates": await message_templates.list_all(ctx)}


_message_templates.act(
    "",
    "create_message_template",
    message_templates.create,
    "{name} created.",
    access=auth.coach(auth.CUSTOMERS.EDIT),
    on=message_templates_page,
    form=message_templates.NewMessageTemplate,
)


_message_templates.change(message_templates.NewMessageTemplate, message_templates.update, on=_message_templates.page())
_message_templates.delete(message_templates.delete)


_templates = web_pages.Records(
    pages, "/templates", "templateId", "template", auth.PROGRAMS, templates.get, folder="library", locks="template"
)
_CHANGE_FORM = validation.patch_of(input_of(templates.TemplateDetails), name="TemplateForm")


class _NewTemplate(templates.TemplateDetails, ItemsText):
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
        "page_url": web_pages.list_url(_templates.prefix, query),
    }


@_templates.create()
async def create_template(ctx: Context, form: _NewTemplate) -> web_pages.Redirect:
    """Create a template, with the items of a text if there is one."""
    template = await templates.create(ctx, {**take(templates.TemplateDetails, form), "items": []})
    plan, text = templates.TemplatePlan(template["_id"]), form["text"]
    _, remarks = await add_text(ctx, plan, template["_id"], text)
    return web_pages.Redirect(_templates.path(template["_id"]), f"{template['name']} created.{remarks}")


declare_workout_pages(
    WorkoutOwnerPages(
        pages=_templates.each,
        owner_type=templates.TemplatePlan,
        owner_parameter="template_id",
        view=auth.PROGRAMS.VIEW,
        edit=auth.PROGRAMS.EDIT,
        layout="library/template_layout.html",
        layout_variables={"template": templates.get},
        overview_path=lambda *_: _templates.prefix,
        is_single=True,
    )
)


_templates.change(_CHANGE_FORM, templates.update, on=_templates.page(path="/edit"))
_templates.delete(templates.delete)

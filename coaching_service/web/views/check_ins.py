"""Check-ins and forms, of a client as the coach sees them and as the client answers them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, FORMS, METRICS, coach, customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import FieldError, InvalidFields, NotFound, invalid_field
from coaching_service.core.fields import Default, input_of
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.list_selection import page_document, skip_of
from coaching_service.library import forms, metric_sets
from coaching_service.progress import check_ins, form_checks, form_responses
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import TaskItemLog
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import FormAnswer, FormItem, ItemLog
from coaching_service.web.formatting import label_day
from coaching_service.web.forms import parse_value
from coaching_service.web.pages import PageQuery, Pages, Redirect, list_url
from coaching_service.web.views import customer_layout
from coaching_service.web.views.results import describe_answer, describe_results

pages = Pages("")

_coach = pages.below("/app/customers/{customerId}/check-ins", locks="customer")
_RESPONSES_PER_PAGE = 8
TASK = "task"
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# The rhythms of the form: a weekday by its number, or a number of days.
RHYTHMS = (
    *((f"weekday-{number}", f"Every {name}") for number, name in enumerate(_WEEKDAYS, start=1)),
    ("days-1", "Every day"),
    *((f"days-{days}", f"Every {days} days") for days in (2, 3, 14, 28)),
)


class CheckInChoice(TypedDict):
    """`content` is `task`, or `form-` or `metrics-` with an identifier; `title` is the title of a task."""

    content: Annotated[str, fields.String()]
    title: Annotated[str, validation.Text(allow_blank=True), Default("")]
    rhythm: Annotated[str, validation.Choice(*(value for value, _ in RHYTHMS))]


class CheckInForm(CheckInChoice):
    """A check-in to add, from its first day to its last one, if any."""

    startDate: Annotated[str, validation.CalendarDate()]
    until: Annotated[str | None, validation.Date()]


@_coach.get("", access=coach(CUSTOMERS.VIEW), template="customer/check_ins.html")
async def check_ins_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The recurring check-ins of a client, with a form to add one."""
    customer = await customer_layout.load_header(ctx, customer_id)
    listed = await check_ins.list_of_client(ctx, customer_id)
    return {
        "customer": customer,
        "check_ins": listed,
        "weekdays": _WEEKDAYS,
        "check_in_kinds": await list_check_in_kinds(ctx),
        "rhythms": RHYTHMS,
        "today": ctx.caller.today(customer["timezone"]),
    }


async def list_check_in_kinds(ctx: Context) -> list[tuple[str, str]]:
    """Return what a check-in can be, as far as the coach may see it."""
    options = [(TASK, "Task or habit")]
    if FORMS.VIEW in ctx.caller.permissions:
        options += [(f"form-{form['_id']}", f"Form: {form['name']}") for form in await forms.list_all(ctx)]
    if METRICS.VIEW in ctx.caller.permissions:
        sets = await metric_sets.list_all(ctx)
        options += [(f"metrics-{metric_set['_id']}", f"Metrics: {metric_set['name']}") for metric_set in sets]
    return options


async def _add(ctx: Context, customer_id: ObjectId, form: CheckInForm) -> object:
    return await check_ins.create(ctx, customer_id, to_check_in(form))


_act = partial(_coach.act, access=coach(CUSTOMERS.EDIT), on=check_ins_page)
_act("", "add_check_in", _add, "{name} is scheduled four weeks ahead.", form=CheckInForm)
_act("/{checkInId}/end", "end_check_in", check_ins.delete, "Check-in ended.", deletes=True)


def to_check_in(form: CheckInForm) -> check_ins.NewCheckIn:
    """Return the check-in that the fields of the form describe. Raises InvalidFields."""
    kind, _, identifier = form["content"].partition("-")
    content_id = parse_id(identifier)
    if kind not in (TASK, "form", "metrics") or (kind != TASK and content_id is None):
        raise invalid_field("content", "must be chosen")
    if kind == TASK and not form["title"]:
        raise invalid_field("title", "should not be empty")
    if form["until"] is not None and form["until"] < form["startDate"]:
        raise invalid_field("until", "must not be before the first day")
    rhythm, _, number = form["rhythm"].partition("-")
    return {
        "formId": content_id if kind == "form" else None,
        "metricsSetId": content_id if kind == "metrics" else None,
        "taskFields": {"title": form["title"], "description": None} if kind == TASK else None,
        "weekday": int(number) if rhythm == "weekday" else None,
        "everyDays": int(number) if rhythm == "days" else None,
        "startDate": form["startDate"],
        "until": form["until"],
    }


def _path(customer_id: ObjectId) -> str:
    return customer_layout.customer_path(customer_id, "/check-ins")


@_coach.get("/responses", access=coach(CUSTOMERS.VIEW, FORMS.VIEW), template="customer/responses.html")
async def responses_page(ctx: Context, customer_id: ObjectId, query: PageQuery) -> dict[str, Any]:
    """The responses of a client, the latest first."""
    customer, responses = await gather_reads(
        ctx, customer_layout.load_header(ctx, customer_id), form_responses.list_between(ctx, customer_id, {})
    )
    first = skip_of(query["page"], _RESPONSES_PER_PAGE)
    compared = []  # each with the answers of the time before
    for at, response in enumerate(responses[first : first + _RESPONSES_PER_PAGE], start=first):
        before = next((each for each in responses[at + 1 :] if _form_key(each) == _form_key(response)), None)
        earlier = {answer["questionId"]: answer["value"] for answer in before["answers"]} if before else {}
        compared.append({**response, "before": before, "earlier": earlier})
    return {
        "customer": customer,
        "responses": compared,
        "describe_answer": describe_answer,
        "photos": await form_checks.show_of_responses(ctx, [each["_id"] for each in compared]),
        "page": page_document(compared, len(responses), query["page"], _RESPONSES_PER_PAGE),
        "page_url": list_url(f"{_path(customer_id)}/responses", query),
    }


def _form_key(response: form_responses.FormResponse) -> object:
    return response["formId"] or response["formName"]


@_coach.post("/responses/{responseId}/review", access=coach(CUSTOMERS.VIEW, FORMS.EDIT), on=responses_page)
async def review_response(ctx: Context, customer_id: ObjectId, response_id: ObjectId, query: PageQuery) -> Redirect:
    """Mark a response as reviewed."""
    response = await form_responses.set_reviewed(ctx, response_id, {"reviewed": True})
    if response["customer"]["_id"] != customer_id:
        raise NotFound("form response")
    return Redirect(list_url(f"{_path(customer_id)}/responses", query)(), "Marked as reviewed.")


# --- The answers to a form as they are submitted, by a coach or by the client -----------------------------------------


_NUMBER_FIELDS: dict[str, fields.Field[Any]] = {"number": validation.Number(), "rating": validation.Integer()}


class AnswerRow(TypedDict):
    """The answer to a question: a text in `value`, or the options `chosen`, one of them unless its type is multi."""

    questionId: ObjectId
    type: forms.QuestionType
    required: Annotated[bool, Default(False)]
    value: Annotated[str, validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True), Default("")]
    chosen: Annotated[list[str], validation.ListOf(validation.Text(max_length=1_000)), Default(list)]


class FormAnswers(TypedDict):
    """The log of a form item as it is submitted; see TaskItemLog."""

    isCompleted: bool
    comment: str | None
    answers: Annotated[list[AnswerRow], Default(list)]


ANSWERS_FORM = input_of(FormAnswers, TaskItemLog)()


def given_answers(form: FormAnswers, pictured: Collection[ObjectId | None] = ()) -> list[FormAnswer]:
    """Return submitted answers without empty ones; `pictured` are the questions that have a picture.

    Raises InvalidFields if the form is completed and a required question has no answer.
    """
    answers: list[Any] = []  # each in the type of its question; None if there is none, or if it is a picture
    for row in form["answers"]:
        text = row["chosen"][0] if row["chosen"] else row["value"]
        if row["type"] == "multi":
            answers.append(row["chosen"] or None)
        elif row["type"] == "photo" or not text:
            answers.append(None)
        else:
            answers.append(parse_value(_NUMBER_FIELDS[row["type"]], text) if row["type"] in _NUMBER_FIELDS else text)
    missing: list[FieldError] = [
        {"field": f"answers.{position}.value", "code": "REQUIRED", "message": "must be answered"}
        for position, row in enumerate(form["answers"])
        if row["required"]
        and answers[position] is None
        # A picture of the question was sent, or waits on the client's device.
        and not (row["type"] == "photo" and (row["value"] or row["questionId"] in pictured))
    ]
    if form["isCompleted"] and missing:
        raise InvalidFields(missing)
    return [
        {"questionId": row["questionId"], "value": answer}
        for row, answer in zip(form["answers"], answers, strict=True)
        if answer is not None
    ]


def recorded_answers(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded answers of an item by the identifier of the question; none unless it is a form."""
    return {str(answer["questionId"]): answer["value"] for answer in item.get("answers") or ()}


# --- The forms a client answers, and the answers given so far ---------------------------------------------------------


_client = pages.below("/train")

_FORM = "/workouts/{wblockId}/items/{witemId}/form"
_PAGE_SIZE = 10
_MAX_COMMENTS = 50


class _FormQuery(TypedDict):
    """`edit`: show the form though it has been answered."""

    edit: Annotated[bool, Default(False)]


@_client.get(_FORM, access=customer(), template="train/form.html")
async def form_page(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, query: _FormQuery) -> dict[str, Any]:
    """The questions of a form, or the answers if there are any, with the pictures by question."""
    block, item = await _read_form(ctx, wblock_id, witem_id)
    sent = await form_checks.show_of_items(ctx, ctx.caller.id, [witem_id]) if item.get("mediaCount") else {}
    results = describe_results(item, ctx.caller.load_unit)
    comments = await conversation.list_messages(
        ctx, ctx.caller.id, {"limit": _MAX_COMMENTS, "after": None, "wblockId": wblock_id}
    )
    messages = comments["docs"] if item["isCompleted"] else []
    return {
        "item": item,
        "recorded": recorded_answers(item),
        "photos": {
            str(each["questionId"]): [file for file in sent[witem_id] if file["questionId"] == each["questionId"]]
            for each in sent.get(witem_id, ())
        },
        "results": results,
        "shows_results": results is not None and item["isCompleted"] and not query["edit"],
        "comments": [
            message
            for message in reversed(messages)
            if message["text"] is not None and message["about"] is not None and message["about"]["witemId"] == witem_id
        ],
        "page_path": customer_layout.form_path(wblock_id, witem_id),
        "workout_path": customer_layout.workout_path(wblock_id),
        "back": _back_path(block),
        "back_name": block["name"] if customer_layout.is_session(block) else "Today",
        "day": label_day(str(block["date"]), ctx.caller.today()),
    }


async def _read_form(ctx: Context, block_id: ObjectId, item_id: ObjectId) -> tuple[Block, FormItem]:
    """Return a workout of the client and its form. Raises NotFound, also for an item that is no form."""
    block = await logs.get_own_block(ctx, block_id)
    item = block["items"][items.find_index(block["items"], item_id)]
    if item["type"] != "FORM":
        raise NotFound("form")
    return block, item


def _back_path(block: Block) -> str:
    return customer_layout.workout_path(block["_id"]) if customer_layout.is_session(block) else "/train"


@_client.post(_FORM, access=customer(), form=ANSWERS_FORM, on=form_page)
async def answer_form(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: FormAnswers) -> Redirect:
    """Store the answers to a form, in place of earlier ones."""
    block, item = await _read_form(ctx, wblock_id, witem_id)
    sent = await form_checks.show_of_items(ctx, ctx.caller.id, [witem_id], seen=False) if item.get("mediaCount") else {}
    log: ItemLog = {
        "isCompleted": True,
        "answers": given_answers(form, {each["questionId"] for each in sent.get(witem_id, ())}),
        "comment": form["comment"],
        "pain": item.get("pain"),
    }
    await logs.log_item(ctx, ctx.caller.id, wblock_id, witem_id, log)
    return Redirect(_back_path(block), f"{item['form']['name']} sent. Your coach will see your answers.")


@_client.get("/form-responses", access=customer(), template="train/form_responses.html")
async def form_responses_page(ctx: Context, query: PageQuery) -> dict[str, Any]:
    """The answers to forms, the latest first."""
    responses = await form_responses.list_between(ctx, ctx.caller.id, {})
    first = skip_of(query["page"], _PAGE_SIZE)
    shown = responses[first : first + _PAGE_SIZE]
    places = await form_responses.locate_own(ctx, [response["_id"] for response in shown])
    return {
        "responses": shown,
        "paths": {response_id: customer_layout.form_path(*place) for response_id, place in places.items()},
        "page": page_document(shown, len(responses), query["page"], _PAGE_SIZE),
        "address": list_url("/train/form-responses", query),
        "describe_answer": describe_answer,
    }

"""What a client answered to forms."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import FieldError, InvalidFields, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.progress.form_responses import store
from coaching_service.progress.form_responses.answers import objection
from coaching_service.training.workouts.events import RecordedItemsRescheduled
from coaching_service.training.workouts.models import FormAnswer, ItemForm


def checked(form: ItemForm, answers: list[FormAnswer], *, whole: bool) -> list[FormAnswer]:
    """`answers` when each fits its question; with `whole` every required question must be answered.

    Raises NotFound for a question that is not of the form, InvalidFields naming the answers that do not fit.
    """
    questions = {question["_id"]: question for question in form["questions"]}
    given = [answer["questionId"] for answer in answers]
    if not set(given) <= questions.keys():
        raise NotFound("question")
    errors: list[FieldError] = [
        {"field": f"answers.{position}.value", "code": "INVALID_ANSWER", "message": reason}
        for position, answer in enumerate(answers)
        if (reason := objection(questions[answer["questionId"]], answer["value"])) is not None
    ]
    if len(set(given)) < len(given):
        errors.append({"field": "answers", "code": "DUPLICATE", "message": "must answer each question only once"})
    if whole:
        unanswered = {answer["questionId"] for answer in answers if _is_blank(answer["value"])}
        for identifier, question in questions.items():
            if question["required"] and (identifier not in given or identifier in unanswered):
                message = f"must answer the required question {identifier}"
                errors.append({"field": "answers", "code": "ANSWER_REQUIRED", "message": message})
    if errors:
        raise InvalidFields(errors)
    return answers


def _is_blank(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


async def log(
    ctx: Context, customer_id: ObjectId, witem_id: ObjectId, form: ItemForm, date: str, answers: list[FormAnswer]
) -> None:
    """What was answered with a FORM item becomes a response, in the log's transaction; without answers there is none.

    The response keeps the questions' text as it is now.
    """
    labels = {question["_id"]: question["label"] for question in form["questions"]}
    if not answers:
        await store.drop(ctx, customer_id, witem_id)
        return
    written = [{**answer, "label": labels[answer["questionId"]]} for answer in answers]
    response = {"formId": form["formId"], "formName": form["name"], "date": date, "answers": written}
    await store.put(ctx, customer_id, witem_id, response)


async def move_responses(ctx: Context, event: RecordedItemsRescheduled) -> None:
    """Move the responses submitted with rescheduled items to the new date."""
    await store.redate(ctx, event.customer_id, event.item_ids, event.date)


async def between(ctx: Context, customer_id: ObjectId, first: str | None, last: str | None) -> list[Document]:
    """A client's responses from `first` to `last` (dates, both included, either may be open), newest first."""
    _, found = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), store.between(ctx, customer_id, first, last)
    )
    responses: list[Document] = found
    return responses

"""The forms a client answers, and the answers given so far."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import page_document, skip_of
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import ITEM_LOG
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.models import FormItem
from coaching_service.web.page_queries import PageQuery, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_check_ins import ANSWERS_FORM, FormAnswers, answer_requests, recorded_answers
from coaching_service.web.views.item_results import describe_answer, describe_results
from coaching_service.web.views.train.layout import form_path, is_session, label_day, workout_path

pages = Pages("/train")

_FORM = "/workouts/{wblockId}/items/{witemId}/form"
_PAGE_SIZE = 10
_MAX_COMMENTS = 50


class _FormQuery(TypedDict):
    """`edit`: show the form though it has been answered."""

    edit: Annotated[bool, Default(False)]


@pages.get(_FORM, access=customer(), template="train/form.html")
async def form_page(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, query: _FormQuery) -> dict[str, Any]:
    """The questions of a form, or the answers if there are any."""
    block, item = await _read_form(ctx, wblock_id, witem_id)
    results = describe_results(item, ctx.caller.load_unit)
    return {
        "item": item,
        "recorded": recorded_answers(item),
        "results": results,
        "shows_results": results is not None and item["isCompleted"] and not query["edit"],
        "comments": await _list_comments(ctx, wblock_id, witem_id) if item["isCompleted"] else [],
        "page_path": form_path(wblock_id, witem_id),
        "back": _back_path(block),
        "back_name": block["name"] if is_session(block) else "Today",
        "day": label_day(str(block["date"]), ctx.caller.today()),
    }


async def _read_form(ctx: Context, block_id: ObjectId, item_id: ObjectId) -> tuple[Block, FormItem]:
    """Return a workout of the client and its form. Raises NotFound, also for an item that is no form."""
    block = await logs.get_own_block(ctx, block_id)
    item = block["items"][items.find_index(block["items"], item_id)]
    if item["type"] != "FORM":
        raise NotFound("form")
    return block, item


async def _list_comments(ctx: Context, block_id: ObjectId, item_id: ObjectId) -> list[Document]:
    """Return the comments on a form, the first one first."""
    page = await conversation.list_messages(ctx, ctx.caller.id, limit=_MAX_COMMENTS, block_id=block_id)
    return [
        {"author": message["author"], "text": message["text"], "createdAt": message["createdAt"]}
        for message in reversed(page["docs"])
        if message["text"] is not None and message["about"] is not None and message["about"]["witemId"] == item_id
    ]


def _back_path(block: Block) -> str:
    return workout_path(block["_id"]) if is_session(block) else "/train"


@pages.post(_FORM, access=customer(), form=ANSWERS_FORM, on=form_page)
async def answer_form(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: FormAnswers) -> Redirect:
    """Store the answers to a form, in place of earlier ones."""
    block, item = await _read_form(ctx, wblock_id, witem_id)
    log = {
        "isCompleted": True,
        "answers": answer_requests(form),
        "comment": form["comment"],
        "pain": item.get("pain"),
    }
    await logs.log_item(ctx, ctx.caller.id, wblock_id, witem_id, ITEM_LOG.load(log))
    return Redirect(_back_path(block), f"{item['form']['name']} sent. Your coach will see your answers.")


@pages.get("/form-responses", access=customer(), template="train/form_responses.html")
async def form_responses_page(ctx: Context, query: PageQuery) -> dict[str, Any]:
    """The answers to forms, the latest first."""
    responses = await form_responses.list_between(ctx, ctx.caller.id, None, None)
    first = skip_of(query["page"], _PAGE_SIZE)
    shown = responses[first : first + _PAGE_SIZE]
    places = await form_responses.locate_own(ctx, [response["_id"] for response in shown])
    return {
        "responses": shown,
        "paths": {response_id: form_path(*place) for response_id, place in places.items()},
        "page": page_document(shown, len(responses), query["page"], _PAGE_SIZE),
        "address": list_url("/train/form-responses", query),
        "describe_answer": describe_answer,
        "label_day": partial(label_day, today=ctx.caller.today()),
    }

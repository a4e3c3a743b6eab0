"""The conversation with a client, for the coach and for the client, the inbox, and form checks."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

import orjson
from aiohttp import web
from marshmallow import ValidationError, fields
from marshmallow.validate import Range

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, FORMS, Access, coach, customer
from coaching_service.core.changes import numbering
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.files import StoredFile
from coaching_service.core.dates import at_local_time
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.events import EventType
from coaching_service.core.fields import Default, input_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.library import message_templates
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people.changes import service as changes
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.progress import form_checks, form_responses
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import (
    Message,
    MessageText,
    NewCoachMessage,
    find_wrong_time,
)
from coaching_service.progress.form_checks import MAX_MARKS, NewMedia, ReceivedMedia
from coaching_service.training.set_media import CONTENT_TYPES, LONGEST_VIDEO, MediaMark
from coaching_service.web.forms import ReceivedFiles
from coaching_service.web.pages import Pages, PartQuery, QueuedTask, Redirect, list_url, own
from coaching_service.web.views.customer_layout import customer_path, form_path, item_path, load_header, review_path
from coaching_service.web.views.history import start_operation
from coaching_service.web.views.train.workout import ITEM, workout_page

pages = Pages("")

_coach = pages.below("/app")
_MESSAGES = "/customers/{customerId}/messages"
_inbox = _coach.below("/inbox")
_PAGE_SIZE = 30
_CONVERSATIONS, _CHECKS, _FORMS, _OVERDUE, _UPCOMING = 30, 6, 20, 100, 10
MESSAGE_FORM = MultipartBody("file", conversation.ATTACHMENT_TYPES, MessageText, size_limit="attachment")
# A local time as browsers send it; None to send a message at once.
LocalTime: TypeAlias = Annotated[str | None, validation.Text(max_length=25)]


class _CoachMessage(MessageText):
    deliverAt: LocalTime


_COACH_FORM = MultipartBody("file", conversation.ATTACHMENT_TYPES, _CoachMessage, size_limit="attachment")


def to_delivery_time(value: str | None, timezone: str) -> datetime | None:
    """Return the time (UTC) of a local time of a form, if it has one. Raises InvalidFields."""
    if value is None:
        return None
    try:
        local = datetime.fromisoformat(value)
    except ValueError:
        raise invalid_field("deliverAt", "must be a date and a time", code="INVALID_TIME") from None
    at = at_local_time(local.date(), f"{local:%H:%M}", timezone)
    if (wrong := find_wrong_time(at)) is not None:
        raise invalid_field("deliverAt", str(wrong), code=wrong.code)
    return at


async def load_templates(ctx: Context, template_id: ObjectId | None, customer_id: ObjectId | None) -> dict[str, Any]:
    """Return the message templates, and the text of one for a client, or None: with the place of the name."""
    if CUSTOMERS.EDIT not in ctx.caller.permissions:
        return {}
    templates = await message_templates.list_all(ctx)
    text = next((each["text"] for each in templates if each["_id"] == template_id), "")
    if text and customer_id is not None:
        text = (await conversation.fill_in(ctx, text, [customer_id]))[customer_id]
    return {"message_templates": templates, "template_text": text}


class FileQuery(TypedDict):
    """Which version of a picture: `small` or `full`."""

    size: Annotated[str, fields.String(), Default("full")]


class _ConversationQuery(PartQuery):
    """A part of the conversation, and the template to begin a message with."""

    templateId: ObjectId | None


@_coach.get(_MESSAGES, access=coach(CUSTOMERS.VIEW), template="messages/conversation.html")
async def messages_page(ctx: Context, customer_id: ObjectId, query: _ConversationQuery) -> dict[str, Any]:
    """The messages of a client, oldest first, with a form to write; the newest part follows what is written.

    Opening the newest marks all as read for the company, if the coach may change the client.
    """
    customer, shown, templates = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        load_messages(ctx, customer_id, messages_path(customer_id), query),
        load_templates(ctx, query["templateId"], customer_id),
    )
    if shown["first_new"] and CUSTOMERS.EDIT in ctx.caller.permissions:
        await conversation.mark_read(ctx, customer_id)
    return {**shown, **templates, "customer": customer}


async def load_messages(ctx: Context, customer_id: ObjectId, path: str, query: PartQuery) -> dict[str, Any]:
    """Return the variables of a part of a conversation: in the newest, `first_new` is the first unread message, if any.

    `path` is the path of its page.
    """
    live_after, is_newest = await numbering.find_last_number(ctx), query["after"] is None
    page = await conversation.list_messages(ctx, customer_id, {"limit": _PAGE_SIZE, "after": query["after"]})
    messages = page["docs"][::-1]
    new = [message["_id"] for message in messages if is_unread(message, to_client=not ctx.caller.is_coach)]
    return {
        "messages": messages,
        "first_new": new[0] if is_newest and new else None,
        "is_newest": is_newest,
        "live_after": live_after,
        "earlier_url": list_url(path, {"after": page["nextCursor"]})() if page["hasMore"] else None,
    }


def is_unread(message: Message, *, to_client: bool = False) -> bool:
    """Return whether a message from the client, or with `to_client` one to the client, has not been read."""
    is_received = (message["author"]["type"] == "client") is not to_client
    return is_received and message["readAt"] is None and message["text"] is not None


@_coach.post(
    _MESSAGES, access=coach(CUSTOMERS.EDIT), locks="customer", form=_COACH_FORM, file_optional=True, on=messages_page
)
async def write_message(ctx: Context, customer_id: ObjectId, form: _CoachMessage, file: StoredFile | None) -> Redirect:
    """Send a message, with a file if one is chosen, at once or later; what the client wrote before counts as read."""
    timezone = await bulk.get_timezone(ctx, customer_id)
    deliver_at = to_delivery_time(form["deliverAt"], timezone)
    await conversation.mark_read(ctx, customer_id)
    await send_message(ctx, customer_id, form, file, deliver_at)
    return Redirect(messages_path(customer_id), "Message sent." if deliver_at is None else "The message waits.")


async def send_message(
    ctx: Context,
    customer_id: ObjectId,
    form: MessageText,
    file: StoredFile | None,
    deliver_at: datetime | None = None,
) -> None:
    """Send a message of the caller in the conversation with a client, with a file if there is one."""
    new: NewCoachMessage = {"text": form["text"], "deliverAt": deliver_at}
    if file is not None:
        new["attachments"] = [(await conversation.upload_message_attachment(ctx, customer_id, file))["_id"]]
    await conversation.create(ctx, customer_id, new)


def _declare_file(of: Pages, path: str, access: Access, read: Callable[..., Awaitable[Download]]) -> None:
    """Declare the address of a file, in its small or full version; browsers do not keep it."""

    @of.get(path, access=access, template="")
    async def file(ctx: Context, query: FileQuery, **identifiers: ObjectId) -> Download:
        return await read(ctx, *identifiers.values(), small=query["size"] == "small")


_FILE = "/{messageId}/attachments/{attachmentId}/file"
_declare_file(_coach, f"{_MESSAGES}{_FILE}", coach(CUSTOMERS.VIEW), conversation.read_attachment)


@_coach.post(
    f"{_MESSAGES}/{{messageId}}/delete", access=coach(CUSTOMERS.EDIT), locks="customer", on=messages_page, deletes=True
)
async def delete_message(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> Redirect:
    """Delete a message of the coach, or recall one of the coach's assistant that has not been sent."""
    message = await conversation.get(ctx, customer_id, message_id)
    await conversation.delete(ctx, customer_id, message_id)
    done = "recalled" if message["deliverAt"] is not None and message["notDelivered"] is None else "deleted"
    return Redirect(messages_path(customer_id), f"Message {done}.")


def messages_path(customer_id: ObjectId) -> str:
    """Return the path of a client's messages."""
    return customer_path(customer_id, "/messages")


class _InboxQuery(PartQuery):
    """With `all` also the conversations in which everything has been read, or what is reviewed."""

    all: Annotated[bool, Default(False)]


@_inbox.get("", access=coach(CUSTOMERS.VIEW), template="messages/inbox.html")
async def inbox_page(ctx: Context, query: _InboxQuery) -> dict[str, Any]:
    """The conversations with unread messages, or all, and form checks; with the permission, forms of clients."""
    after, live_after = query["after"], await numbering.find_last_number(ctx)
    page, checks = await gather_reads(
        ctx,
        conversation.list_conversations(
            ctx,
            {"limit": _CONVERSATIONS, "after": after}
            if query["all"]
            else {"limit": _CONVERSATIONS, "after": after, "unread": True},
        ),
        form_checks.list_received(ctx, {"limit": _CHECKS, "after": None, "reviewed": False}),
    )
    shown_forms: dict[str, Any] = {}
    if FORMS.VIEW in ctx.caller.permissions:
        responses, overdue, upcoming = await gather_reads(
            ctx,
            form_responses.list_received(ctx, {"limit": _FORMS, "after": None, "reviewed": False}),
            form_responses.list_overdue(ctx, limit=_OVERDUE),
            form_responses.list_pending(ctx, {"limit": _UPCOMING, "after": None, "overdue": False}),
        )
        by_client: dict[ObjectId, list[form_responses.FormRequest]] = {}
        for request in overdue:
            by_client.setdefault(request["customer"]["_id"], []).append(request)
        shown_forms = {
            "responses": responses,
            "photos": await form_checks.show_of_responses(ctx, [each["_id"] for each in responses["docs"]]),
            "overdue": list(by_client.values()),
            "counts_all": len(overdue) < _OVERDUE,
            "upcoming": upcoming,
        }
    return {
        "page": page,
        "checks": checks,
        "live_after": None if query["after"] else live_after,
        "next_url": list_url(_inbox.prefix, {"after": page["nextCursor"], "all": query["all"]})(),
        **shown_forms,
    }


class _ReminderForm(TypedDict):
    """The client to remind; None: all."""

    customerId: ObjectId | None


@_inbox.post("/remind", access=coach(CUSTOMERS.EDIT, FORMS.VIEW), on=inbox_page, request_class="bulk", idempotent=True)
async def remind_of_forms(ctx: Context, form: _ReminderForm) -> Redirect | QueuedTask:
    """Remind a client of the forms without an answer, or all clients who have any."""
    if (customer_id := form["customerId"]) is None:
        ids = await customer_bulk.list_selected(ctx, {"filter": {"archived": False}, "dryRun": False})
        return start_operation(ctx, "bulkRemindOfForms", ids, {}, return_url=_inbox.prefix)
    return Redirect(f"{_inbox.prefix}#pending", await remind(ctx, customer_id))


async def remind(ctx: Context, customer_id: ObjectId) -> str:
    """Remind a client of the forms without an answer, and say so. Raises NotFound, Forbidden."""
    customer = await customers.get_visible_reference(ctx, customer_id)
    operation = await customer_bulk.remind_of_forms(ctx, None)
    selection: customer_bulk.Selection = {"ids": [customer_id], "dryRun": False}
    result = await customer_bulk.run_operation(ctx, selection, operation, customer_bulk.Run())
    skipped = result.get("skipped", [])
    return _REMINDED[skipped[0]["code"] if skipped else ""].format(customer["name"])


_REMINDED: Mapping[str, str] = {
    "": "{} is reminded.",
    "REMINDED_TODAY": "{} has been reminded today already.",
    "NOTHING_OVERDUE": "{} has no overdue form, or does not train today.",
}


_inbox.act(
    "/responses/{responseId}/reviewed",
    "mark_response_reviewed",
    partial(form_responses.set_reviewed, body={"reviewed": True}),
    "Marked as reviewed.",
    access=coach(FORMS.EDIT),
    on=inbox_page,
    to=f"{_inbox.prefix}#responses",
    idempotent=True,
)


# --- Messages that appear on an open page: what its script asks for, and waits for ------------------------------------
# A request is held until a message is written, changed or deleted, at most 25 seconds: less than proxies wait. The page
# itself has the messages: the script reads it again, as any browser would.


_SHOWN: tuple[EventType, ...] = ("message.created", "message.updated", "message.deleted")
_WAIT_SECONDS = 25
_LAST = 10**15


class LiveQuery(TypedDict):
    """The number that the page continues from; without it, the answer is the last number, at once."""

    after: Annotated[int | None, fields.Integer(validate=Range(0, _LAST)), Default(None)]


@pages.get("/app/customers/{customerId}/messages/live", access=coach(CUSTOMERS.VIEW), template="", request_class="held")
async def stream_conversation(ctx: Context, customer_id: ObjectId, query: LiveQuery) -> web.StreamResponse:
    """Wait for the next message of a conversation; answers `{after, hasNews}`."""
    async with ctx.turn():
        await customers.get_visible(ctx, customer_id, customers.SCOPE_FIELDS)
    return await _follow(ctx, query, lambda client: client == customer_id)


@pages.get("/app/inbox/live", access=coach(CUSTOMERS.VIEW), template="", request_class="held")
async def stream_inbox(ctx: Context, query: LiveQuery) -> web.StreamResponse:
    """Wait for the next message of a client in the coach's scope; answers `{after, hasNews}`."""
    async with ctx.turn():
        in_scope = await customers.list_ids_in_scope(ctx)
    return await _follow(ctx, query, lambda client: in_scope is None or client in in_scope)


@pages.get("/train/messages/live", access=customer(), template="", request_class="held")
async def stream_own_conversation(ctx: Context, query: LiveQuery) -> web.StreamResponse:
    """Wait for the next message of the client's conversation; answers `{after, hasNews}`."""
    return await _follow(ctx, query, lambda client: client == ctx.caller.id)


async def _follow(ctx: Context, query: LiveQuery, is_shown: Callable[[ObjectId | None], bool]) -> web.StreamResponse:
    if query["after"] is None:
        async with ctx.turn():
            answer = {"after": await numbering.find_last_number(ctx), "hasNews": False}
    else:
        position, has_news = await changes.wait_for_event(ctx, query["after"], _SHOWN, is_shown, wait=_WAIT_SECONDS)
        answer = {"after": position, "hasNews": has_news}
    return web.json_response(answer, headers={"Cache-Control": "no-store"})


# --- The conversation of a client with the coaches --------------------------------------------------------------------


_client = pages.below("/train/messages")


@_client.get("", access=customer(), template="train/messages.html")
async def own_messages_page(ctx: Context, query: PartQuery) -> dict[str, Any]:
    """The messages by day, the newest last, with a form to write; opening the newest marks all as read."""
    shown = await load_messages(ctx, ctx.caller.id, _client.prefix, query)
    if shown["first_new"]:
        await conversation.mark_read(ctx, ctx.caller.id)
    today = ctx.caller.today()
    return shown | {"day_names": {today: "Today", today - timedelta(days=1): "Yesterday"}, "unread_messages": 0}


@_client.post("", access=customer(), form=MESSAGE_FORM, file_optional=True, on=own_messages_page)
async def send_own_message(ctx: Context, form: MessageText, file: StoredFile | None) -> Redirect:
    """Send a message, with a file if one is chosen, to the coaches."""
    await send_message(ctx, ctx.caller.id, form, file)
    return Redirect(_client.prefix)


_declare_file(_client, _FILE, customer(), own(conversation.read_attachment))
_client.act(
    "/{messageId}/delete",
    "delete_own_message",
    own(conversation.delete),
    "Message deleted.",
    access=customer(),
    on=own_messages_page,
    deletes=True,
)


# --- Form checks: what clients have sent, and the page on which a coach looks at it and answers -----------------------


_checks = pages.below("/app/form-checks")
_LISTED, _COMPARED = 30, 50
_CHECK = "/{mediaId}"
Then = Literal["next", "stay", "review"]


@_checks.get("", access=coach(CUSTOMERS.VIEW), template="form_checks/list.html")
async def form_checks_page(ctx: Context, query: _InboxQuery) -> dict[str, Any]:
    """What clients have sent and no coach has reviewed, or all of it."""
    part: form_checks.ReceivedQuery = {"limit": _LISTED, "after": query["after"]}
    page = await form_checks.list_received(ctx, part if query["all"] else {**part, "reviewed": False})
    return {
        "checks": page,
        "next_url": list_url(_checks.prefix, {"after": page["nextCursor"], "all": query["all"]})(),
    }


class _CheckQuery(TypedDict):
    """What a video is compared with (`other`), another one of the same client."""

    other: Annotated[str, fields.String(), Default("")]


@_checks.get(_CHECK, access=coach(CUSTOMERS.VIEW), template="form_checks/check.html")
async def form_check_page(ctx: Context, media_id: ObjectId, query: _CheckQuery) -> dict[str, Any]:
    """A video or picture with its comments, tools to look at it and to draw, and a form to answer."""
    check = await form_checks.get(ctx, media_id)
    customer_id = check["customer"]["_id"]
    others, following = await gather_reads(
        ctx,
        form_checks.list_received(ctx, {"limit": _COMPARED, "after": None, "customerId": customer_id}),
        find_next(ctx, media_id),
    )
    if CUSTOMERS.EDIT in ctx.caller.permissions:
        await form_checks.mark_seen(ctx, customer_id, [media_id])
    comparable = [each for each in others["docs"] if each["_id"] != media_id]
    other_id = parse_id(query["other"])
    return {
        "check": check,
        "comparable": comparable,
        "other": next((each for each in comparable if each["_id"] == other_id), None),
        "next": following,
    }


async def find_next(ctx: Context, media_id: ObjectId) -> ReceivedMedia | None:
    """Return the newest file that no coach has reviewed, another one than this; None if there is none."""
    page = await form_checks.list_received(ctx, {"limit": 2, "after": None, "reviewed": False})
    return next((each for each in page["docs"] if each["_id"] != media_id), None)


_declare_file(_checks, f"{_CHECK}/file", coach(CUSTOMERS.VIEW), form_checks.read_file)


class _MarksField(fields.String):
    """What is drawn, as the script of the page writes it: JSON; nothing without it."""

    _marks = fields.List(fields.Nested(input_of(MediaMark)))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        try:
            read = orjson.loads(value or "[]")
        except orjson.JSONDecodeError:
            raise ValidationError("is not JSON") from None
        if not isinstance(read, list) or len(read) > MAX_MARKS:
            raise ValidationError(f"must not be more than {MAX_MARKS} marks")
        return self._marks.deserialize(read)


class AnswerForm(MessageText):
    """An answer to a form check, and where its form leads."""

    at: Annotated[float | None, validation.Number(minimum=0, maximum=LONGEST_VIDEO)]
    marks: Annotated[Sequence[MediaMark], _MarksField(), Default(())]
    then: Annotated[Then, Default("stay")]


class ReviewForm(TypedDict):
    """Whether a file is reviewed, and where its form leads."""

    reviewed: bool
    then: Annotated[Then, Default("stay")]


@_checks.post(f"{_CHECK}/comments", access=coach(CUSTOMERS.EDIT), form=AnswerForm, on=form_check_page)
async def answer_form_check(ctx: Context, media_id: ObjectId, form: AnswerForm) -> Redirect:
    """Send a comment to the client; with `next` the file is reviewed, too."""
    await form_checks.add_comment(ctx, media_id, {"text": form["text"], "at": form["at"], "marks": list(form["marks"])})
    return await _leave(ctx, media_id, form["then"], "Comment sent.", reviews=form["then"] == "next")


@_checks.post(f"{_CHECK}/reviewed", access=coach(CUSTOMERS.EDIT), form=ReviewForm, on=form_check_page, idempotent=True)
async def review_form_check(ctx: Context, media_id: ObjectId, form: ReviewForm) -> Redirect:
    """Mark a file as reviewed without a comment, or as not reviewed."""
    await form_checks.set_reviewed(ctx, media_id, {"reviewed": form["reviewed"]})
    return await _leave(ctx, media_id, form["then"], "Marked as checked." if form["reviewed"] else "On the list again.")


async def _leave(ctx: Context, media_id: ObjectId, then: Then, notice: str, *, reviews: bool = False) -> Redirect:
    """Return where a form leads: to the next file that is not reviewed, to the workout, or to the same page again."""
    check = await (
        form_checks.set_reviewed(ctx, media_id, {"reviewed": True}) if reviews else form_checks.get(ctx, media_id)
    )
    customer_id = check["customer"]["_id"]
    if then == "review" and check["workout"] is not None:
        path = f"{review_path(customer_id, check['wblockId'])}#check-{media_id}"
    elif then == "next":
        following = await find_next(ctx, media_id)
        path = f"{_checks.prefix}/{following['_id']}" if following else _checks.prefix
    else:
        path = f"{_checks.prefix}/{media_id}"
    return Redirect(path, notice, customer_id=customer_id)


_checks.act(
    f"{_CHECK}/comments/{{commentId}}/delete",
    *("delete_check_comment", form_checks.delete_comment, "Comment deleted."),
    access=coach(CUSTOMERS.EDIT),
    on=form_check_page,
    deletes=True,
)


@_checks.post(f"{_CHECK}/delete", access=coach(CUSTOMERS.EDIT), on=form_check_page, deletes=True)
async def delete_form_check(ctx: Context, media_id: ObjectId) -> Redirect:
    """Delete a video or picture with its comments."""
    check = await form_checks.get(ctx, media_id)
    await form_checks.delete(ctx, check["customer"]["_id"], check["wblockId"], check["witemId"], media_id)
    return Redirect(_checks.prefix, "Deleted.")


# --- The videos and pictures that a client adds to the sets of a workout, and the comments on them --------------------


_media = pages.below("/train")

_MEDIA = f"{ITEM}/media"
_SET = re.compile(r"([0-9a-f]{24})-([0-9]{1,4})-([0-9]{1,4})")


class MediaForm(TypedDict):
    """Which set a file shows, as `exercise-round-index`; empty: the whole exercise; or the question that it answers."""

    questionId: ObjectId | None
    shown: Annotated[str, validation.Text(max_length=40, allow_blank=True), Default("")]


# The picture of a video is made by the browser that sends it.
_MEDIA_FORM = MultipartBody("file", CONTENT_TYPES, MediaForm, size_limit="attachment", more_files=("poster",))


@_media.post(_MEDIA, access=customer(), form=_MEDIA_FORM, on=workout_page)
async def add_media(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: MediaForm, files: ReceivedFiles
) -> Redirect:
    """Send a video or picture of a set to the coaches."""
    if "file" not in files.stored:
        message = files.rejected.get("file", "must be chosen")
        raise InvalidFields([{"field": "file", "code": "REQUIRED", "message": message}])
    if "poster" in files.rejected:
        raise invalid_field("file", "has a preview that is not a picture", code="NOT_A_PICTURE")
    stored, question_id, named = files.stored, form["questionId"], _SET.fullmatch(form["shown"])
    shown: NewMedia = {} if question_id is None else {"questionId": question_id}
    if question_id is None and named is not None:
        shown = {"exerciseId": ObjectId(named[1]), "index": int(named[3])}
        if round_number := int(named[2]):
            shown["round"] = round_number
    await form_checks.add(ctx, ctx.caller.id, wblock_id, witem_id, shown, stored["file"], stored.get("poster"))
    if question_id is not None:
        return Redirect(f"{form_path(wblock_id, witem_id)}?edit=true#photo-{question_id}", "Photo sent to your coach.")
    return Redirect(item_path(wblock_id, witem_id), "Sent to your coach.")


_declare_file(_media, "/media/{mediaId}/file", customer(), form_checks.read_file)


@_media.post(f"{_MEDIA}/{{mediaId}}/comments", access=customer(), form=MessageText, on=workout_page)
async def comment_on_media(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId, form: MessageText
) -> Redirect:
    """Answer the coach's comments on a video or picture."""
    await form_checks.add_comment(ctx, media_id, {"text": form["text"], "at": None, "marks": []})
    return Redirect(item_path(wblock_id, witem_id), "Sent to your coach.")


_media.act(
    f"{_MEDIA}/{{mediaId}}/delete",
    "delete_media",
    own(form_checks.delete),
    "Deleted.",
    access=customer(),
    on=workout_page,
    to="/train/workouts/{wblockId}#item-{witemId}",
    deletes=True,
)

"""Messages for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import validates_schema

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.fields import argument_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Tools
from coaching_service.core.validation import Identifier, invalid
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.bulk import ClientsArgument, choose_clients, identify_clients, name_clients
from coaching_service.progress.conversation import messages
from coaching_service.progress.conversation import service as conversation
from coaching_service.training.workout_text.tools import check_names

tools = Tools()
_LONGEST_IN_LIST, _LONGEST_PREVIEW = 1_500, 200


class ListMessages(mcp.ToolPart):
    """The client, if only one, and the part of the list."""

    customerId = Identifier(**mcp.optional("The client."))


class SendMessage(ClientsArgument):
    """The clients, the text, and the workout it is about."""

    text = argument_of(messages.MessageText, "text")
    workoutId = Identifier(**mcp.optional("The workout that it comments on, of one client."))

    @validates_schema(skip_on_field_errors=False)
    def comments_on_one(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require one client for a message about a workout."""
        if data.get("workoutId") is not None and data.get("customerId") is None:
            raise invalid("needs a customerId", "NOT_COMBINED", "workoutId")


@tools.tool("List messages", access=coach(CUSTOMERS.VIEW), takes=ListMessages(), returns=mcp.Lines)
async def list_messages(ctx: Context, customer_id: ObjectId | None, limit: int, after: str | None) -> mcp.Answer:
    """List the conversation with a client, newest first; or, without customerId, the clients whose messages no coach
    has read, each with the last one."""
    if customer_id is None:
        unread = await conversation.list_conversations(ctx, {"unread": True, "limit": limit, "after": after})
        lines, ids = [], [each["customer"]["_id"] for each in unread["docs"]]
        for each in unread["docs"]:
            message, name = each["lastMessage"], mcp.typed(each["customer"]["name"])
            last = "" if message is None else f"; last {describe_message(message, _LONGEST_PREVIEW)}"
            lines.append(f"{name} [{each['customer']['_id']}]: {each['unread']} unread{last}")
        return mcp.list_answer("Clients with unread messages", unread, lines, ids=ids)
    customer, messages = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        conversation.list_messages(ctx, customer_id, {"limit": limit, "after": after}),
    )
    lines = [describe_message(message) for message in messages["docs"]]
    return mcp.list_answer(f"Messages with {mcp.typed(customer['name'])}", messages, lines)


def describe_message(message: messages.Message, longest: int = _LONGEST_IN_LIST) -> str:
    """Return a message in one line: when, by whom, whether it has been delivered and read, and its text."""
    about, attached, author = message["about"], message["attachments"], message["author"]
    is_unread = message["readAt"] is None and message["text"] is not None
    facts = mcp.join_facts(
        mcp.format_time(message["createdAt"]),
        f"{author['type']} {mcp.typed(author['name'])}",
        "waiting to be sent" if message["deliverAt"] is not None else is_unread and "not read yet",
        about and f"about workout {about['wblockId']}",
        attached and f"with {', '.join(file['kind'] for file in attached)}",
    )
    return f"{facts}: {'(deleted)' if message['text'] is None else mcp.typed_line(message['text'], longest)}"


@tools.tool(
    "Send a message",
    access=coach(CUSTOMERS.EDIT),
    takes=SendMessage(),
    writes=True,
    locks="customer",
    destructive=True,
    open_world=True,
    outreach=True,
    confirms=(mcp.Reason.MANY_CLIENTS,),
    check=check_names,
)
async def send_message(
    ctx: Context,
    customer_id: ObjectId | None,
    customer_ids: list[ObjectId] | None,
    groups: list[str] | None,
    text: str,
    workout_id: ObjectId | None,
) -> mcp.Written:
    """Send a message to a client, or to each of several, who may also get a mail about it. It is delivered after a
    minute; undo recalls it until then, and later deletes it if unread."""
    clients = await choose_clients(ctx, customer_id, customer_ids, groups)
    if len(clients) == 1:
        return await write_message(ctx, clients[0]["_id"], text, workout_id)
    await conversation.send_to_each(ctx, {client["_id"]: text for client in clients})
    return mcp.Written(
        f"Sent to {name_clients(clients)}, delivered in a minute: {mcp.typed_line(text, messages.MAX_TEXT_LENGTH)}.",
        identify_clients(clients),
        mcp.find_reasons(clients=len(clients)),
    )


async def write_message(
    ctx: Context, customer_id: ObjectId, text: str, workout_id: ObjectId | None = None
) -> mcp.Written:
    """Send a message and return what a tool returns that has done so. Raises what `service.create` raises."""
    new: messages.NewMessage = {"text": text}
    if workout_id is not None:
        new["about"] = {"wblockId": workout_id}
    message = await conversation.create(ctx, customer_id, new)
    customer = await customers.get_visible_reference(ctx, customer_id)
    about = " about a workout" if workout_id is not None else ""
    return mcp.Written(
        f"Sent to {mcp.typed(customer['name'])}{about}, delivered in a minute: "
        f"{mcp.typed_line(text, messages.MAX_TEXT_LENGTH)}.",
        {"customerId": customer_id, "messageId": message["_id"]},
    )

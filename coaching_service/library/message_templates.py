"""Message templates: words that the coaches of a company use again, in which `{firstName}` stands for the client's."""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypedDict

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, MESSAGES_SCOPES, coach, within
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import Conflict, require_found
from coaching_service.core.fields import Change, Description, input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize

MAX_TEXT_LENGTH = 5_000  # characters
FIRST_NAME = "{firstName}"
_MAX_TEMPLATES = 500


class NewMessageTemplate(TypedDict):
    """A message template to create."""

    name: Annotated[str, validation.Text(), Description("What coaches choose it by.")]
    text: Annotated[
        str,
        validation.Text(max_length=MAX_TEXT_LENGTH),
        Description("Plain text. `{firstName}` stands for the first name of the client, anything else for itself."),
    ]


class MessageTemplate(NewMessageTemplate, declared.Stored):
    """A text that is sent again and again."""


MessageTemplateChange: TypeAlias = Change[NewMessageTemplate]

templates = Documents[MessageTemplate](
    "messageTemplates",
    (declared.Index(("sortName", "_id")), declared.Index(("_id",))),
    private=("companyId", "sortName"),
    history=declared.History("message_template"),
    transfer=declared.Portable(
        MessageTemplate,
        declared.LIBRARY,
        complete=lambda template: {**template, "sortName": normalize(template["name"])},
    ),
)


routes = Routes(
    "/coach/message-templates",
    tag="Messages",
    path_descriptions={"messageTemplateId": "The identifier of the message template."},
)


@routes.get("", access=within(MESSAGES_SCOPES, coach(CUSTOMERS.VIEW)), operation_id="listMessageTemplates")
async def list_all(ctx: Context) -> list[MessageTemplate]:
    """List the message templates by name."""
    return await templates.find(ctx, {}, sort=("sortName", "_id"))


async def get(ctx: Context, template_id: ObjectId) -> MessageTemplate:
    """Return a message template. Raises NotFound."""
    return require_found(await templates.find_one(ctx, {"_id": template_id}), "message template")


@routes.post(
    "",
    access=within(MESSAGES_SCOPES, coach(CUSTOMERS.EDIT)),
    example={"name": "Good week", "text": "Well done this week, {firstName}!"},
    operation_id="createMessageTemplate",
)
@transactional
async def create(ctx: Context, body: NewMessageTemplate) -> MessageTemplate:
    """Create a message template.

    `{firstName}` in its text is filled in when a message is sent with its `templateId`.
    """
    if await templates.count(ctx, {}) >= _MAX_TEMPLATES:
        raise Conflict(f"A company has at most {_MAX_TEMPLATES} message templates", code="TOO_MANY_TEMPLATES")
    return await templates.insert(ctx, {**body, "sortName": normalize(body["name"])})


@routes.patch(
    "/{messageTemplateId}",
    access=within(MESSAGES_SCOPES, coach(CUSTOMERS.EDIT)),
    body=validation.patch_of(input_of(NewMessageTemplate), name="MessageTemplateChange"),
    example={"name": "Great week", "version": 0},
    operation_id="updateMessageTemplate",
)
async def update(ctx: Context, message_template_id: ObjectId, body: MessageTemplateChange) -> MessageTemplate:
    """Change a message template."""
    fields: dict[str, str] = {name: body[name] for name in ("name", "text") if name in body}
    if "name" in body:
        fields["sortName"] = normalize(body["name"])
    template = await templates.rewrite(ctx, {"_id": message_template_id}, lambda _: fields, version=body.get("version"))
    return require_found(template, "message template")


@routes.delete(
    "/{messageTemplateId}", access=within(MESSAGES_SCOPES, coach(CUSTOMERS.EDIT)), operation_id="deleteMessageTemplate"
)
async def delete(ctx: Context, message_template_id: ObjectId) -> None:
    """Delete a message template.

    Messages that were sent with it stay, and so do those that wait to be sent.
    """
    require_found(await templates.delete(ctx, {"_id": message_template_id}), "message template")


def fill_in(text: str, name: str, surname: str | None) -> str:
    """Return the text of a template for a client. The first word of a name without a surname is the first name."""
    return text.replace(FIRST_NAME, name if surname else name.split(maxsplit=1)[0])

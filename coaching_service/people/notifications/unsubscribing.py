"""Turning off one kind of mail by the link that each of these mails has, without signing in."""

from __future__ import annotations

from typing import cast, get_args
from urllib.parse import urlencode

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.people.customers import first_access
from coaching_service.people.customers import service as customers
from coaching_service.people.notification_settings.models import Kind, NotificationSettings
from coaching_service.people.notifications.models import Recipient
from coaching_service.people.team import service as team


def make_link(ctx: Context, recipient: Recipient, kind: Kind, settings_path: str) -> str:
    """Return the address of the page, below the settings, where the recipient turns off a kind of mail."""
    target = f"{ctx.company_id}.{recipient['type']}.{recipient['_id']}.{kind}"
    token = f"{target}.{ctx.services.vault.sign(_signed(target))}"
    return f"{ctx.services.base_url}{settings_path}/off?{urlencode({'token': token})}"


def find_kind(services: Services, token: str) -> Kind | None:
    """Return the kind of mail that a token turns off; None if it is not valid."""
    return target[2] if (target := _read(services, token)) is not None else None


async def turn_off(ctx: Context, token: str) -> None:
    """Turn off the mails of the kind, for the recipient whom the token was mailed to.

    Raises NotFound if the token is not valid, or the recipient is deleted.
    """
    if (target := _read(ctx.services, token)) is None:
        raise NotFound("mail")
    company_id, recipient, kind = target
    if recipient["type"] == "coach":
        owner_ctx = ctx.acting_as(await team.get_owner(ctx.services, company_id))
        principal = await team.load_principal(owner_ctx, recipient["_id"])
    elif (client := await first_access.load_author(ctx.services, company_id, recipient["_id"])) is None:
        raise NotFound("mail")
    else:
        principal = client
    await _turn_off(ctx.acting_as(principal), kind)


@transactional
async def _turn_off(ctx: Context, kind: Kind) -> None:
    change: object = {kind: {"mail": False}}
    if ctx.caller.is_coach:
        await team.set_notifications(ctx, cast("NotificationSettings", change))
    else:
        await customers.update_own(ctx, {"notifications": cast("NotificationSettings", change)})


def _read(services: Services, token: str) -> tuple[ObjectId, Recipient, Kind] | None:
    target, _, signature = token.rpartition(".")
    if not services.vault.verify_signature(_signed(target), signature):
        return None
    company, recipient_type, recipient, kind = target.split(".")
    company_id, recipient_id = parse_id(company), parse_id(recipient)
    if company_id is None or recipient_id is None or kind not in get_args(Kind):
        return None
    return company_id, cast("Recipient", {"type": recipient_type, "_id": recipient_id}), cast("Kind", kind)


def _signed(target: str) -> str:
    return f"turn mails off:{target}"

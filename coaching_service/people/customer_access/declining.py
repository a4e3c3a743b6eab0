"""Declining the invitations of a company, by the link in one of them."""

from __future__ import annotations

from coaching_service.core.auth.principal import Principal
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.people.invitations import service as invitations
from coaching_service.people.team import service as team


async def find_company_name(services: Services, token: str) -> str | None:
    """Return the name of the company whose invitations a token declines; None if the token is not valid."""
    try:
        owner, _ = await _read(services, token)
    except NotFound:
        return None
    return owner.company.name


async def decline(ctx: Context, token: str) -> None:
    """Stop further invitations of the company to the person whom the token was mailed to.

    Raises NotFound if the token is not valid or the company is deleted.
    """
    owner, address_hash = await _read(ctx.services, token)
    await invitations.decline(ctx.acting_as(owner), address_hash)


async def _read(services: Services, token: str) -> tuple[Principal, str]:
    target = invitations.get_decline_token(services, token)
    if target is None:
        raise NotFound("invitation")
    company_id, address_hash = target
    return await team.get_owner(services, company_id), address_hash

"""Who requested work that goes on after the response: stored with a job, and loaded again for each of its steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from coaching_service.core.auth.principal import Principal, Via
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.assistants import service as assistants
from coaching_service.people.bulk_jobs.models import StoredCaller
from coaching_service.people.team import service as team

# What the jobs of a credential end with; the work that a session has begun continues when its user signs out.
_CREDENTIALS: Mapping[Via, Callable[[Context, ObjectId], Awaitable[bool]]] = {
    "apiKey": api_keys.is_usable,
    "mcp": assistants.is_connected,
}


def to_stored(ctx: Context) -> StoredCaller:
    """Return the coach who calls, and through which interface, as a job keeps them."""
    caller = ctx.caller
    return {
        "coachId": caller.id,
        "via": caller.via,
        "interface": ctx.interface,
        "credentialId": caller.credential_id,
        "permissions": sorted(caller.permissions),
        "isAssigned": caller.customers_scope == "assigned",
        "restricted": caller.restricted,
        "application": caller.application,
    }


async def load(ctx: Context, caller: StoredCaller) -> Principal | None:
    """Return the coach who requested a job of the company, with the rights of then that still exist.

    None if the coach is gone, or the API key or the assistant has no access any more. Raises CompanySuspended.
    """
    principal = await team.get_principal(ctx.services, caller["coachId"])
    if principal is None or principal.company.id != ctx.company_id:
        return None
    usable = _CREDENTIALS.get(caller["via"])
    if usable is not None and not await usable(ctx, caller["credentialId"]):
        return None
    return replace(
        principal,
        via=caller["via"],
        credential_id=caller["credentialId"],
        permissions=principal.permissions & frozenset(caller["permissions"]),
        customers_scope="assigned" if caller["isAssigned"] else principal.customers_scope,
        restricted=caller["restricted"],
        application=caller["application"],
    )

"""Coaches and clients of all companies, by the e-mail address with which they sign in."""

from __future__ import annotations

from coaching_service.core import audit
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.administration.models import Person
from coaching_service.lifecycle.administration.service import Operator
from coaching_service.people.account import listing as companies
from coaching_service.people.assistants import service as assistants
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.service import Identity
from coaching_service.people.sessions import passwords
from coaching_service.people.sessions import service as sessions
from coaching_service.people.team import service as team


async def find(operator: Operator, email: str) -> Person:
    """Return the coach or client who signs in by an e-mail address, which is unique. Raises NotFound."""
    identity = await _require(operator, email)
    await operator.record("person.shown", identity.subject_id)
    ctx = await operator.acting_in(identity.company_id)
    company = await companies.find(operator.services, identity.company_id)
    if company is None:
        raise NotFound("company")
    if identity.kind == "coach":
        coach = await team.require_coach(ctx, identity.subject_id)
        name, role = coach["name"], str(coach["role"])
    else:
        client = await customers.get_visible(ctx, identity.subject_id, ("name",))
        name, role = client["name"], "CUSTOMER"
    return {
        "id": identity.subject_id,
        "role": role,
        "name": name,
        "email": await identities.get_email(ctx, identity.subject_id) or email,
        "companyId": identity.company_id,
        "companyName": company["companyName"],
        "companyState": "suspended" if "suspension" in company else "active",
        "sessions": await sessions.count_open(ctx, identity.subject_id),
    }


async def send_reset(operator: Operator, email: str) -> ObjectId:
    """Queue a mail with a link to set a password, and return whose it is.

    Raises NotFound, CompanySuspended; Conflict for an archived client, who may not sign in.
    """
    identity = await _require(operator, email)
    if not await passwords.send_reset_mail(operator.services, identity):
        raise Conflict("This client is archived and cannot sign in")
    await operator.record("person.resetSent", identity.subject_id)
    return identity.subject_id


async def end_sessions(operator: Operator, email: str) -> Person:
    """End all sessions of a coach or client, and a coach's connected assistants; returns the person as before.

    API keys stay. Raises NotFound.
    """
    person = await find(operator, email)
    await _end_sessions(await operator.acting_in(person["companyId"]), operator.name, person["id"])
    return person


@transactional
async def _end_sessions(ctx: Context, operator: str, subject_id: ObjectId) -> None:
    await sessions.end_sessions(ctx, subject_id)
    await assistants.revoke_all_of_coach(ctx, subject_id)
    await audit.record_operator(ctx, operator, "person.sessionsEnded", subject_id)


async def _require(operator: Operator, email: str) -> Identity:
    if (identity := await identities.find_by_email(operator.services, email)) is None:
        raise NotFound("user", f"No coach or client signs in by {email}")
    return identity

"""Companies as the operator of the service sees and changes them; every action is recorded under the operator's name.

It is called from the command line of the machine that has the database and the keys, and by no request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coaching_service.core import audit
from coaching_service.core.database import file_totals
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.file_totals import FileTotals
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.jobs.queue import stored_jobs
from coaching_service.lifecycle.administration.models import CoachSummary, CompanyFigures, CompanyUsage
from coaching_service.people.account import listing as companies
from coaching_service.people.account import service as account
from coaching_service.people.account import suspension
from coaching_service.people.account.models import Account
from coaching_service.people.customers import counters
from coaching_service.people.identities import service as identities
from coaching_service.people.team import service as team
from coaching_service.people.team.models import Coach

BATCH = 100


@dataclass(frozen=True)
class Operator:
    """The operator: the name of the operating system's user, and the services of the command."""

    services: Services
    name: str

    async def record(self, action: str, subject_id: ObjectId | None = None, **facts: Any) -> None:
        """Record an action that changes nothing."""
        await audit.record_operator(Context(self.services), self.name, action, subject_id, **facts)

    async def acting_in(self, company_id: ObjectId) -> Context:
        """Return a context of the company's owner, for background work. Raises NotFound."""
        owner = await team.get_owner(self.services, company_id)
        return Context(self.services, owner, operation="admin", interface="system")


async def find_company_id(operator: Operator, text: str) -> ObjectId:
    """Return the company with this identifier, or of the coach who signs in by this e-mail address. Raises NotFound."""
    if (company_id := parse_id(text)) is not None:
        return company_id
    identity = await identities.find_by_email(operator.services, text) if "@" in text else None
    if identity is None or identity.kind != "coach":
        raise NotFound("company", f"No company has the identifier or the coach {text}")
    return identity.company_id


async def iterate_companies(operator: Operator) -> AsyncIterator[CompanyFigures]:
    """Yield all companies but sandboxes, oldest first."""
    await operator.record("companies.listed")
    async for batch in companies.iterate(operator.services, batch=BATCH):
        for figures in await _figures_of(operator.services, batch):
            yield figures


async def iterate_usage(operator: Operator) -> AsyncIterator[CompanyUsage]:
    """Yield the files of all companies but sandboxes, oldest company first, and what each may store."""
    await operator.record("storage.listed")
    async for batch in companies.iterate(operator.services, batch=BATCH):
        usage = await file_totals.read_usage(operator.services, [company["_id"] for company in batch])
        for company in batch:
            yield {"id": company["_id"], "name": company["companyName"], **usage[company["_id"]]}


async def get_company(operator: Operator, company_id: ObjectId) -> CompanyFigures:
    """Return a company with its coaches and its number of jobs. Raises NotFound."""
    company = await _require_company(operator, company_id)
    await operator.record("company.shown", company_id)
    [figures] = await _figures_of(operator.services, [company])
    ctx = await operator.acting_in(company_id)
    coaches = [_summary(coach) for coach in await team.list_coaches(ctx)]
    jobs = await stored_jobs.count(ctx, {}, hint="companyId_about")
    return {**figures, "timezone": company["timezone"], "coaches": coaches, "jobs": jobs}


async def suspend_company(operator: Operator, company_id: ObjectId, reason: str) -> None:
    """Suspend a company. Raises NotFound, Conflict if it is suspended already."""
    if "suspension" in await _require_company(operator, company_id):
        raise Conflict("The company is suspended already")
    ctx = await operator.acting_in(company_id)
    await _change(ctx, operator.name, "company.suspended", lambda tx: suspension.suspend(tx, reason), reason=reason)


async def resume_company(operator: Operator, company_id: ObjectId) -> None:
    """End the suspension of a company. Raises NotFound, Conflict if it is not suspended."""
    if "suspension" not in await _require_company(operator, company_id):
        raise Conflict("The company is not suspended")
    await _change(await operator.acting_in(company_id), operator.name, "company.resumed", suspension.resume)


async def erase_company(operator: Operator, company_id: ObjectId) -> None:
    """Delete a company: its users are locked out at once, and a running service erases the data. Raises NotFound."""
    await _change(await operator.acting_in(company_id), operator.name, "company.erased", account.delete)


@transactional
async def _change(
    ctx: Context, /, operator: str, action: str, change: Callable[[Context], Awaitable[None]], **facts: str
) -> None:
    """Change the company of a context, and record the action of the operator with it."""
    await change(ctx)
    await audit.record_operator(ctx, operator, action, ctx.company_id, **facts)


async def _require_company(operator: Operator, company_id: ObjectId) -> Account:
    if (company := await companies.find(operator.services, company_id)) is None:
        raise NotFound("company")
    return company


async def _figures_of(services: Services, batch: Sequence[Account]) -> list[CompanyFigures]:
    """Return companies with their owner and figures, each read for all of them at once."""
    ids = [company["_id"] for company in batch]
    owners, clients, storage = await gather_reads(
        Context(services),
        team.list_owners(services, ids),
        counters.read_of_companies(services, ids),
        file_totals.read(services, ids),
    )
    return [
        _figures(
            company,
            owners.get(company["_id"]),
            clients.get(company["_id"], (0, 0)),
            storage.get(company["_id"], {"files": 0, "bytes": 0}),
        )
        for company in batch
    ]


def _figures(company: Account, owner: Coach | None, clients: tuple[int, int], storage: FileTotals) -> CompanyFigures:
    suspended = company.get("suspension")
    return {
        "id": company["_id"],
        "name": company["companyName"],
        "state": "active" if suspended is None else "suspended",
        "suspendedAt": None if suspended is None else suspended["at"],
        "reason": None if suspended is None else suspended["reason"],
        "createdAt": company["createdAt"],
        "owner": None if owner is None else _summary(owner),
        "activeClients": clients[0],
        "archivedClients": clients[1],
        "files": storage["files"],
        "bytes": storage["bytes"],
    }


def _summary(coach: Coach) -> CoachSummary:
    return {"id": coach["_id"], "name": coach["name"], "email": coach["email"], "role": coach["role"]}

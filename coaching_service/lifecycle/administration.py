"""Companies as the operator of the service sees and changes them; every action is recorded under the operator's name.

It is called from the command line of the machine that has the database and the keys, and by no request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, nan
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, cast

import structlog

from coaching_service.core import audit
from coaching_service.core.auth import SecretUnreadable
from coaching_service.core.database import files
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.database.documents import now
from coaching_service.core.database.files import StorageUsage
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.jobs import mail, worker
from coaching_service.core.jobs.mail import FailedMail, MailContent, failed_mails
from coaching_service.core.jobs.queue import StoredJob, stored_jobs
from coaching_service.core.metrics import reading_in_time
from coaching_service.people import account, assistants, team
from coaching_service.people.account import Account
from coaching_service.people.customers import counters
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.identities.service import Identity
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import service as sessions
from coaching_service.people.team import Coach

if TYPE_CHECKING:
    from coaching_service.installation.backup.contents import Manifest

# --- What the operator reads: the shape of `coaching-service admin ... --json` ----------------------------------------


CompanyState = Literal["active", "suspended"]


class CompanyUsage(StorageUsage):
    """A company with the number and the bytes of its files, and how much it may store; 0: no limit."""

    id: ObjectId
    name: str


class Person(TypedDict):
    """A coach or client who signs in by an e-mail address.

    `role` is OWNER, EMPLOYEE or CUSTOMER; `sessions` is the number of sign-in sessions that have not ended.
    """

    id: ObjectId
    role: str
    name: str
    email: str
    companyId: ObjectId
    companyName: str
    companyState: CompanyState
    sessions: int


JobState = Literal["due", "waiting", "running", "failing", "paused"]


class JobSummary(TypedDict):
    """A job in the queue. `attempts` failed or were interrupted; `dueAt` is the end of the lease of a running one."""

    id: ObjectId
    kind: str
    state: JobState
    companyId: ObjectId | None
    clientId: ObjectId | None
    dueAt: datetime
    attempts: int
    createdAt: datetime


class MailSummary(TypedDict):
    """A mail that was not sent. `failed`: it is not tried again by itself; `retrying`: it is, at `dueAt`.

    `to` and `subject` are None if its master key is missing.
    """

    id: ObjectId
    state: Literal["failed", "retrying"]
    companyId: ObjectId | None
    clientId: ObjectId | None
    to: str | None
    subject: str | None
    reason: str
    tries: int
    dueAt: datetime | None


class CoachSummary(TypedDict):
    """A coach. `role` is OWNER or EMPLOYEE."""

    id: ObjectId
    name: str
    email: str
    role: str


class CompanyFigures(TypedDict):
    """A company as the operator sees it.

    `owner` is None for a company without one. `storage` is the number and the bytes of its files. `suspendedAt` and
    `reason` are None while it is active. Only a single company has `coaches`, `timezone` and `jobs`, the number of
    jobs in the queue.
    """

    id: ObjectId
    name: str
    state: CompanyState
    suspendedAt: datetime | None
    reason: str | None
    createdAt: datetime
    owner: CoachSummary | None
    activeClients: int
    archivedClients: int
    files: int
    bytes: int
    timezone: NotRequired[str]
    coaches: NotRequired[list[CoachSummary]]
    jobs: NotRequired[int]


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
    async for batch in account.iterate(operator.services, batch=BATCH):
        for figures in await _figures_of(operator.services, batch):
            yield figures


async def iterate_usage(operator: Operator) -> AsyncIterator[CompanyUsage]:
    """Yield the files of all companies but sandboxes, oldest company first, and what each may store."""
    await operator.record("storage.listed")
    async for batch in account.iterate(operator.services, batch=BATCH):
        usage = await files.read_usage(operator.services, [company["_id"] for company in batch])
        for company in batch:
            yield {"id": company["_id"], "name": company["companyName"], **usage[company["_id"]]}


async def get_company(operator: Operator, company_id: ObjectId) -> CompanyFigures:
    """Return a company with its coaches and its number of jobs. Raises NotFound."""
    company = await _require_company(operator, company_id)
    await operator.record("company.shown", company_id)
    [figures] = await _figures_of(operator.services, [company])
    ctx = await operator.acting_in(company_id)
    coaches = [_company_summary(coach) for coach in await team.list_coaches(ctx)]
    jobs = await stored_jobs.count(ctx, {}, hint="companyId_about")
    return {**figures, "timezone": company["timezone"], "coaches": coaches, "jobs": jobs}


async def suspend_company(operator: Operator, company_id: ObjectId, reason: str) -> None:
    """Suspend a company. Raises NotFound, Conflict if it is suspended already."""
    if "suspension" in await _require_company(operator, company_id):
        raise Conflict("The company is suspended already")
    ctx = await operator.acting_in(company_id)
    await _change(ctx, operator.name, "company.suspended", lambda tx: account.suspend(tx, reason), reason=reason)


async def resume_company(operator: Operator, company_id: ObjectId) -> None:
    """End the suspension of a company. Raises NotFound, Conflict if it is not suspended."""
    if "suspension" not in await _require_company(operator, company_id):
        raise Conflict("The company is not suspended")
    await _change(await operator.acting_in(company_id), operator.name, "company.resumed", account.resume)


async def erase_company(operator: Operator, company_id: ObjectId) -> None:
    """Delete a company: its users are locked out at once, and a running service erases the data. Raises NotFound."""
    await _change(await operator.acting_in(company_id), operator.name, "company.erased", account.delete)


@transactional
async def _change(
    ctx: Context,
    /,
    operator: str,
    action: str,
    change: Callable[[Context], Awaitable[None]],
    subject_id: ObjectId | None = None,
    **facts: str,
) -> None:
    """Change the company of a context, or what it has, and record the action of the operator with it."""
    await change(ctx)
    await audit.record_operator(ctx, operator, action, subject_id or ctx.company_id, **facts)


async def _require_company(operator: Operator, company_id: ObjectId) -> Account:
    if (company := await account.find(operator.services, company_id)) is None:
        raise NotFound("company")
    return company


async def _figures_of(services: Services, batch: Sequence[Account]) -> list[CompanyFigures]:
    """Return companies with their owner and figures, each read for all of them at once."""
    ids = [company["_id"] for company in batch]
    owners, clients, storage = await gather_reads(
        Context(services),
        team.list_owners(services, ids),
        counters.read_of_companies(services, ids),
        files.read_totals(services, ids),
    )
    figures: list[CompanyFigures] = []
    for company in batch:
        suspended, owner = company.get("suspension"), owners.get(company["_id"])
        active, archived = clients.get(company["_id"], (0, 0))
        stored = storage.get(company["_id"])
        figures.append(
            {
                "id": company["_id"],
                "name": company["companyName"],
                "state": "active" if suspended is None else "suspended",
                "suspendedAt": None if suspended is None else suspended["at"],
                "reason": None if suspended is None else suspended["reason"],
                "createdAt": company["createdAt"],
                "owner": None if owner is None else _company_summary(owner),
                "activeClients": active,
                "archivedClients": archived,
                "files": 0 if stored is None else stored["files"],
                "bytes": 0 if stored is None else stored["bytes"],
            }
        )
    return figures


def _company_summary(coach: Coach) -> CoachSummary:
    return {"id": coach["_id"], "name": coach["name"], "email": coach["email"], "role": coach["role"]}


# --- Jobs ------------------------------------------------------------------------------------------------------------


async def iterate_jobs(operator: Operator, kind: str | None, state: JobState | None) -> AsyncIterator[JobSummary]:
    """Yield the jobs of all companies, of a kind and in a state if given."""
    await operator.record("jobs.listed")
    async for job in worker.iterate(operator.services, kind):
        if state in (None, _state_of(job)):
            yield {
                "id": job["_id"],
                "kind": job["kind"],
                "state": _state_of(job),
                "companyId": job["companyId"],
                "clientId": job["about"],
                "dueAt": job["runAfter"],
                "attempts": job["attempts"],
                "createdAt": job["createdAt"],
            }


async def retry_job(operator: Operator, job_id: ObjectId) -> None:
    """Make a job due now. Raises NotFound, Conflict while it is running."""
    await _change_job(Context(operator.services), operator.name, await _require_idle(operator, job_id), "job.retried")


async def cancel_job(operator: Operator, job_id: ObjectId, *, permanent_kinds: Collection[str]) -> None:
    """Remove a job. Raises NotFound, Conflict while it is running, or if it is of a kind that must not be removed."""
    job = await _require_idle(operator, job_id)
    if job["kind"] in permanent_kinds:
        raise Conflict(f"A job of the kind {job['kind']} cannot be cancelled")
    await _change_job(Context(operator.services), operator.name, job, "job.cancelled")


@transactional
async def _change_job(ctx: Context, operator: str, job: StoredJob, action: str) -> None:
    changes = worker.make_due if action == "job.retried" else worker.remove
    if not await changes(ctx, job):
        raise Conflict("A worker has begun the job meanwhile; try again")
    await audit.record_operator(ctx, operator, action, job["_id"], kind=job["kind"])


async def _require_idle(operator: Operator, job_id: ObjectId) -> StoredJob:
    if (job := await worker.find(operator.services, job_id)) is None:
        raise NotFound("job")
    if _state_of(job) == "running":
        raise Conflict("The job is running; try again when it has ended")
    return job


def _state_of(job: StoredJob) -> JobState:
    is_later = job["runAfter"] > now()
    if job.get("isPaused"):
        return "paused"
    if job["lease"] is not None and is_later:
        return "running"
    return "failing" if job["attempts"] else "waiting" if is_later else "due"


# --- Mail ------------------------------------------------------------------------------------------------------------


async def iterate_unsent_mail(operator: Operator) -> AsyncIterator[MailSummary]:
    """Yield the mail of all companies that was not sent: what was given up in 30 days, and what is tried again."""
    await operator.record("mail.listed")
    given_up = failed_mails.across_companies(operator.services)
    async for each in given_up.find({}, sort=[("createdAt", 1)], hint="createdAt"):
        failed = cast("FailedMail", each)
        yield _mail_summary(operator, failed, failed["sealed"], failed["reason"], failed["tries"], None)
    async for job in worker.iterate(operator.services, mail.SEND):
        arguments = job["arguments"]
        if arguments["tries"]:
            reason = arguments.get("reason", "")
            yield _mail_summary(operator, job, arguments["sealed"], reason, arguments["tries"], job["runAfter"])


async def send_again(operator: Operator, mail_id: ObjectId) -> None:
    """Send a mail again that was given up, or now instead of later. Raises NotFound, Conflict while it is sent."""
    given_up = failed_mails.across_companies(operator.services)
    if (failed := cast("FailedMail | None", await given_up.find_one({"_id": mail_id}))) is None:
        job = await _require_idle(operator, mail_id)
        if job["kind"] != mail.SEND:
            raise NotFound("mail")
        await _change_job(Context(operator.services), operator.name, job, "job.retried")
        return

    async def send(tx: Context) -> None:
        if not await mail.send_again(tx, failed):
            raise NotFound("mail")

    await _change(await operator.acting_in(failed["companyId"]), operator.name, "mail.sentAgain", send, failed["_id"])


def _mail_summary(
    operator: Operator, stored: FailedMail | StoredJob, sealed: bytes, reason: str, tries: int, due_at: datetime | None
) -> MailSummary:
    content: MailContent | None = None
    with suppress(SecretUnreadable):
        content = mail.open_content(operator.services.vault, stored["_id"], sealed)
    return {
        "id": stored["_id"],
        "state": "failed" if due_at is None else "retrying",
        "companyId": stored["companyId"],
        "clientId": stored["about"],
        "to": content and content["to"],
        "subject": content and content["subject"],
        "reason": reason,
        "tries": tries,
        "dueAt": due_at,
    }


# --- The record of each successful backup and verification, and the age of the last one for the metrics ---------------


CREATED, VERIFIED = "backup.created", "backup.verified"
log = structlog.get_logger("coaching_service.backup")


async def record_backup(services: Services, operator: str, manifest: Manifest) -> None:
    """Record a backup that is complete, and at the place where it stays, as an action of the operator."""
    documents, size = (sum(entry[name] for entry in manifest["collections"]) for name in ("documents", "bytes"))
    await _record(services, operator, CREATED, moment=manifest["createdAt"], documents=documents, bytes=size)


async def record_verification(services: Services, operator: str, backups: int, size: int) -> None:
    """Record that all backups of a store were found complete, as an action of the operator."""
    await _record(services, operator, VERIFIED, moment=datetime.now(UTC).isoformat(), backups=backups, bytes=size)


async def _record(services: Services, operator: str, action: str, **details: str | int) -> None:
    """Record an action; without the permission to write, or without the database, log a warning: the backup is good."""
    try:
        await audit.record_operator(Context(services), operator, action, None, **details)
    except Exception as error:
        if (known := as_service_error(error)) is None:
            raise
        log.warning("not recorded: metrics show an older one", action=action, reason=known.message)


async def read_age(services: Services, action: str) -> float:
    """Return the seconds since the moment of the last action that is recorded; infinite if none is."""
    last = await audit.find_last_operator_action(services, action)
    if last is None:
        return inf
    moment = datetime.fromisoformat(cast("Any", last)["moment"])
    return (datetime.now(UTC) - moment).total_seconds()


async def read_metrics(services: Services) -> None:
    """Read the ages of the last backup and verification; not a number while the database does not respond."""
    for action, gauge in ((CREATED, services.metrics.backup_age), (VERIFIED, services.metrics.verify_age)):
        gauge.set(await reading_in_time(read_age(services, action), nan, action))


# --- Coaches and clients of all companies, by the e-mail address with which they sign in ------------------------------


async def find(operator: Operator, email: str) -> Person:
    """Return the coach or client who signs in by an e-mail address, which is unique. Raises NotFound."""
    identity = await _require(operator, email)
    await operator.record("person.shown", identity.subject_id)
    ctx = await operator.acting_in(identity.company_id)
    company = await account.find(operator.services, identity.company_id)
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
    if not await credentials.send_reset_mail(operator.services, identity):
        raise Conflict("This client is archived and cannot sign in")
    await operator.record("person.resetSent", identity.subject_id)
    return identity.subject_id


async def end_sessions(operator: Operator, email: str) -> Person:
    """End all sessions of a coach or client, and a coach's connected assistants; returns the person as before.

    API keys stay. Raises NotFound.
    """
    person = await find(operator, email)

    async def end(tx: Context) -> None:
        await sessions.end_sessions(tx, person["id"])
        await assistants.revoke_all_of_coach(tx, person["id"])

    ctx = await operator.acting_in(person["companyId"])
    await _change(ctx, operator.name, "person.sessionsEnded", end, person["id"])
    return person


async def reset_second_factor(operator: Operator, email: str) -> ObjectId:
    """Remove every second factor of a coach or client, end all sessions, and return whose they were.

    Raises NotFound, CompanySuspended; Conflict for an archived client, who may not sign in.
    """
    identity = await _require(operator, email)
    if (user := await sessions.get_principal(operator.services, identity)) is None:
        raise Conflict("This client is archived and cannot sign in")
    await credentials.reset_second_factor(Context(operator.services).acting_as(user), user, operator.name)
    return identity.subject_id


async def _require(operator: Operator, email: str) -> Identity:
    if (identity := await identities.find_by_email(operator.services, email)) is None:
        raise NotFound("user", f"No coach or client signs in by {email}")
    return identity

"""Background jobs: list, retry and cancel; and mail that was not sent: list, and send again."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args

import click

from coaching_service import features
from coaching_service.command_line.companies import write_export
from coaching_service.command_line.doctor import rotate as rotate_secrets
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import validate_with, with_services
from coaching_service.core import audit
from coaching_service.core.audit import OperatorAction
from coaching_service.core.database.context import Services
from coaching_service.core.errors import NotFound
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.validation import Text
from coaching_service.lifecycle import administration
from coaching_service.people import push as push_service

# --- What the commands of the operator share: options, the operator's name, and what they print -----------------------


T = TypeVar("T")
P = ParamSpec("P")
_UNITS = ("B", "kB", "MB", "GB", "TB")

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object in each line, for scripts; its fields are stable."
)
company_argument = click.argument("company", metavar="COMPANY")


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a printed list: its title, its width, and its value in a row; the last one may be longer."""

    title: str
    width: int
    value: Callable[[T], object]
    right: bool = False

    def align(self, value: object) -> str:
        """Return `value` in the width of the column; `-` for None."""
        text = "-" if value is None else str(value)
        return text.rjust(self.width) if self.right else text.ljust(self.width)


def operator_name() -> str:
    """Return the name of the operating system's user, of the one before `sudo`."""
    user_id = os.environ.get("SUDO_UID", "") if os.getuid() == 0 else ""
    number = int(user_id) if user_id.isdigit() else os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run as a user without a name
        return f"uid {number}"


def run_as_operator(data: Path | None, work: Callable[[administration.Operator], Awaitable[T]]) -> T:
    """Run `work` as the operator, on the database of the settings, also while a service runs."""

    async def run(services: Services) -> T:
        return await work(administration.Operator(services, operator_name()))

    return with_services(settings_with(data), run)


def as_operator(
    command: Callable[Concatenate[administration.Operator, P], Awaitable[None]],
) -> Callable[..., None]:
    """Return a command that runs as a whole as the operator: it takes the operator, and gets --json and --data."""

    @json_option
    @data_option
    @wraps(command)
    def run(data: Path | None, *arguments: P.args, **given: P.kwargs) -> None:
        run_as_operator(data, lambda operator: command(operator, *arguments, **given))

    return run


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object in one line."""
    sys.stdout.buffer.write(to_json(value) + b"\n")
    sys.stdout.buffer.flush()


async def print_list(rows: AsyncIterator[T], columns: Sequence[Column[T]], *, as_json: bool, empty: str) -> None:
    """Print rows as they are read: in columns, or as JSON. `empty` is printed to standard error if there are none."""
    count = 0
    async for row in rows:
        if as_json:
            print_json(row)  # type: ignore[arg-type]  # every row is a TypedDict
        else:
            if count == 0:
                click.echo("  ".join(column.align(column.title) for column in columns).rstrip())
            click.echo("  ".join(column.align(column.value(row)) for column in columns).rstrip())
        count += 1
    if not count and not as_json:
        click.echo(empty, err=True)


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Print names and values, one in each line."""
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        click.echo(f"{name.ljust(width)}  {value}".rstrip())


def report(message: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the outcome of a change: a sentence, or its facts as JSON."""
    if as_json:
        print_json(facts)
    else:
        click.echo(message)


def format_bytes(size: int) -> str:
    """Return a size for people: `15.2 MB`."""
    amount, unit = float(size), 0
    while amount >= 1000 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def format_time(time: datetime | None) -> str:
    """Return a stored time (UTC) to the minute; `-` for None."""
    return "-" if time is None else f"{time:%Y-%m-%d %H:%M}"


_job_argument = click.argument("job", metavar="JOB")
_JOBS: tuple[Column[administration.JobSummary], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("STATE", 8, lambda row: row["state"]),
    Column("KIND", 24, lambda row: row["kind"]),
    Column("DUE (UTC)", 16, lambda row: format_time(row["dueAt"])),
    Column("TRIES", 5, lambda row: row["attempts"], right=True),
    Column("COMPANY", 0, lambda row: row["companyId"]),
)
_MAIL: tuple[Column[administration.MailSummary], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("STATE", 8, lambda row: row["state"]),
    Column("TRIES", 5, lambda row: row["tries"], right=True),
    Column("TO", 28, lambda row: row["to"] or "-"),
    Column("SUBJECT", 32, lambda row: (row["subject"] or "-")[:32]),
    Column("REASON", 0, lambda row: row["reason"]),
)


@click.group()
def jobs() -> None:
    """The queue of background jobs of all companies.

    \b
    due      a worker takes it next
    waiting  it is due later
    running  a worker has it
    failing  an attempt failed or was interrupted; it is tried again when it is due
    paused   its company is suspended

    \b
    coaching-service admin jobs list --state failing
    coaching-service admin jobs retry 0123456789abcdef01234567
    """


@jobs.command("list")
@click.option("--kind", type=click.Choice(sorted(features.STEPS)), metavar="KIND", help="Only jobs of this kind.")
@click.option("--state", type=click.Choice(get_args(administration.JobState)), help="Only jobs in this state.")
@as_operator
async def list_jobs(
    operator: administration.Operator, kind: str | None, state: administration.JobState | None, *, as_json: bool
) -> None:
    """List jobs by kind, and when they are due."""
    rows = administration.iterate_jobs(operator, kind, state)
    await print_list(rows, _JOBS, as_json=as_json, empty="There is no such job")


@jobs.command()
@_job_argument
@as_operator
async def retry(operator: administration.Operator, job: str, *, as_json: bool) -> None:
    """Make JOB due now, instead of later; a running service takes it within seconds."""
    await administration.retry_job(operator, _identifier_of(job))
    report(f"{job} is due", {"id": job, "state": "due"}, as_json=as_json)


@jobs.command()
@_job_argument
@as_operator
async def cancel(operator: administration.Operator, job: str, *, as_json: bool) -> None:
    """Remove JOB: what it was to do is not done. Erasures, and jobs that repeat, cannot be cancelled."""
    kinds = (*features.ERASURES, *features.STANDING_JOBS)
    await administration.cancel_job(operator, _identifier_of(job), permanent_kinds=kinds)
    report(f"{job} is cancelled", {"id": job, "state": "cancelled"}, as_json=as_json)


@click.group()
def mail() -> None:
    """Mail that was not sent.

    \b
    retrying  the mail server did not accept it; it is tried again for two days
    failed    it was rejected for good, or an attempt was interrupted and it may have been sent; stored for 30 days

    \b
    coaching-service admin mail list
    coaching-service admin mail resend 0123456789abcdef01234567
    """


@mail.command("list")
@as_operator
async def list_mail(operator: administration.Operator, *, as_json: bool) -> None:
    """List the mail that was not sent: to whom, how often it was tried, and why it failed."""
    await print_list(administration.iterate_unsent_mail(operator), _MAIL, as_json=as_json, empty="All mail was sent")


@mail.command()
@click.argument("identifier", metavar="MAIL")
@as_operator
async def resend(operator: administration.Operator, identifier: str, *, as_json: bool) -> None:
    """Send MAIL again, to the same address; a running service does it within seconds. Links in it may have expired."""
    await administration.send_again(operator, _identifier_of(identifier))
    report(f"{identifier} is sent again", {"id": identifier, "state": "queued"}, as_json=as_json)


def _identifier_of(text: str) -> ObjectId:
    """Return the identifier of a job that was typed. Raises NotFound for anything else."""
    if (identifier := parse_id(text)) is None:
        raise NotFound("job", f"{text} is not an identifier")
    return identifier


# --- Companies: list, show, suspend, resume, export and erase ---------------------------------------------------------


_COLUMNS: tuple[Column[administration.CompanyFigures], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("STATE", 9, lambda row: row["state"]),
    Column("CREATED", 10, lambda row: f"{row['createdAt']:%Y-%m-%d}"),
    Column("CLIENTS", 7, lambda row: row["activeClients"] + row["archivedClients"], right=True),
    Column("STORAGE", 9, lambda row: format_bytes(row["bytes"]), right=True),
    Column("OWNER", 28, lambda row: row["owner"] and row["owner"]["email"]),
    Column("NAME", 0, lambda row: row["name"]),
)


@click.group()
def companies() -> None:
    """Companies: who they are, and whether they may use the service.

    COMPANY is an identifier, as `list` prints it, or the e-mail address by which one of its coaches signs in.

    \b
    coaching-service admin companies list
    coaching-service admin companies suspend olga@example.com "Invoice 2026-118 is not paid"
    coaching-service admin companies resume olga@example.com
    """


@companies.command("list")
@click.option("--state", type=click.Choice(["active", "suspended"]), help="Only companies in this state.")
@as_operator
async def list_companies(operator: administration.Operator, state: str | None, *, as_json: bool) -> None:
    """List all companies, oldest first: owner, date of creation, clients, storage and state.

    They are printed as they are read. Sandboxes are left out.
    """
    rows = (row async for row in administration.iterate_companies(operator) if state in (None, row["state"]))
    await print_list(rows, _COLUMNS, as_json=as_json, empty="There is no such company")


@companies.command()
@company_argument
@as_operator
async def show(operator: administration.Operator, company: str, *, as_json: bool) -> None:
    """Show one company with its coaches."""
    row = await administration.get_company(operator, await administration.find_company_id(operator, company))
    if as_json:
        print_json(row)
        return
    suspended = () if row["reason"] is None else (("Reason", row["reason"]),)
    print_fields(
        [
            ("ID", str(row["id"])),
            ("Name", row["name"]),
            ("State", f"{row['state']} {format_time(row['suspendedAt'])}".removesuffix(" -")),
            *suspended,
            ("Created", format_time(row["createdAt"])),
            ("Time zone", row["timezone"]),
            ("Clients", f"{row['activeClients']} active, {row['archivedClients']} archived"),
            ("Storage", f"{format_bytes(row['bytes'])} in {row['files']} files"),
            ("Jobs", f"{row['jobs']} in the queue"),
            *(("Coach", f"{each['name']} <{each['email']}>, {each['role'].lower()}") for each in row["coaches"]),
        ]
    )


@companies.command()
@company_argument
@click.argument("reason", callback=validate_with(Text()))
@as_operator
async def suspend(operator: administration.Operator, company: str, reason: str, *, as_json: bool) -> None:
    """Suspend a company at once; its data stays, and `resume` restores everything.

    Its API keys, the sessions of its coaches and clients, assistants, calendar links and links to files get 403 with
    the code COMPANY_SUSPENDED from their next request; its webhooks and jobs pause. REASON is for you: it is stored
    with the company and in the log of the operator, and never sent.
    """
    company_id = await administration.find_company_id(operator, company)
    await administration.suspend_company(operator, company_id, reason)
    report(f"{company_id} is suspended", {"id": company_id, "state": "suspended"}, as_json=as_json)


@companies.command()
@company_argument
@as_operator
async def resume(operator: administration.Operator, company: str, *, as_json: bool) -> None:
    """End the suspension of a company: the same keys, sessions and links work again, webhooks and jobs continue."""
    company_id = await administration.find_company_id(operator, company)
    await administration.resume_company(operator, company_id)
    report(f"{company_id} is active", {"id": company_id, "state": "active"}, as_json=as_json)


@companies.command()
@company_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@as_operator
async def export(operator: administration.Operator, company: str, file: Path, *, as_json: bool) -> None:
    """Write everything of a company to FILE, a ZIP archive that `coaching-service import` reads.

    A suspended company can be exported too.
    """
    company_id = await administration.find_company_id(operator, company)
    size = await write_export(replace(await operator.acting_in(company_id), operation="exportCompany"), file)
    await operator.record("company.exported", company_id)
    report(f"{file}: {size} bytes", {"id": company_id, "file": str(file), "bytes": size}, as_json=as_json)


@companies.command()
@company_argument
@click.option("--yes", is_flag=True, help="Do not ask for the name of the company.")
@json_option
@data_option
def erase(company: str, yes: bool, as_json: bool, data: Path | None) -> None:
    """Erase a company with all its clients and files. It cannot be undone: `export` it before.

    You are asked to type its name, unless --yes. Its users are locked out at once; a running service erases the data
    within minutes. Backups still have it.
    """

    async def read_company(operator: administration.Operator) -> administration.CompanyFigures:
        return await administration.get_company(operator, await administration.find_company_id(operator, company))

    async def work(operator: administration.Operator) -> None:
        await administration.erase_company(operator, company_id)
        message = f"{company_id} is deleted; a running service erases its data"
        report(message, {"id": company_id, "state": "erased"}, as_json=as_json)

    row = run_as_operator(data, read_company)
    company_id, name = row["id"], row["name"]
    if not yes and click.prompt(f"Type the name of the company, {name}, to erase it", err=True) != name:
        raise click.ClickException("That is not the name of the company: nothing was erased")
    run_as_operator(data, work)


# --- The keys of the service: rotate the master keys, and replace the key of Web Push ---------------------------------


@click.group()
def keys() -> None:
    """The master keys with which secrets are stored.

    \b
    coaching-service new-secret-key
    coaching-service admin keys rotate
    """


@keys.command()
@as_operator
async def rotate(operator: administration.Operator, *, as_json: bool) -> None:
    """Encrypt every stored secret with the newest of SECRET_KEYS, as `coaching-service rotate-secrets` does.

    Its help says how to replace a master key while the service runs.
    """
    total, changed = await rotate_secrets(operator.services)
    await operator.record("keys.rotated", changed=changed)
    report(f"{total} keys, {changed} of them re-encrypted", {"secrets": total, "changed": changed}, as_json=as_json)


@click.group()
def push() -> None:
    """The key with which the service signs notifications (VAPID). `doctor --check push-key` shows it.

    \b
    coaching-service admin push rotate-key
    """


@push.command("rotate-key")
@as_operator
async def rotate_key(operator: administration.Operator, *, as_json: bool) -> None:
    """Make a new key, and print its public part.

    A device that receives notifications uses the previous key until it opens a page: then it subscribes with the new
    one. Keys that were replaced over 100 days ago are deleted.
    """
    key = await push_service.rotate_key(operator.services)
    await operator.record("push.keyRotated", key=key)
    report(f"New devices subscribe with {key}", {"key": key}, as_json=as_json)


# --- Coaches and clients: find by e-mail, send a reset of the password, end sessions ----------------------------------


email_argument = click.argument("email", metavar="EMAIL")


@click.group()
def people() -> None:
    """Coaches and clients of all companies, by the e-mail address with which they sign in.

    \b
    coaching-service admin people find ana@example.com
    coaching-service admin people send-reset ana@example.com
    coaching-service admin people end-sessions ana@example.com
    """


@people.command()
@email_argument
@as_operator
async def find(operator: administration.Operator, email: str, *, as_json: bool) -> None:
    """Show who signs in by EMAIL, in which company, and with how many sessions."""
    person = await administration.find(operator, email)
    if as_json:
        print_json(person)
        return
    print_fields(
        [
            ("ID", str(person["id"])),
            ("Name", person["name"]),
            ("Role", {"CUSTOMER": "client"}.get(person["role"], person["role"].lower())),
            ("E-mail", person["email"]),
            ("Company", f"{person['companyName']}, {person['companyId']}, {person['companyState']}"),
            ("Sessions", str(person["sessions"])),
        ]
    )


@people.command("send-reset")
@email_argument
@as_operator
async def send_reset(operator: administration.Operator, email: str, *, as_json: bool) -> None:
    """Send a link to set a new password to EMAIL; it works once, within the hour.

    The password and the sessions stay until the link is used. A running service sends the mail.
    """
    person_id = await administration.send_reset(operator, email)
    report(f"A link to set a password is sent to {email}", {"id": person_id}, as_json=as_json)


@people.command("end-sessions")
@email_argument
@as_operator
async def end_sessions(operator: administration.Operator, email: str, *, as_json: bool) -> None:
    """Sign out all devices of EMAIL, and disconnect the assistants of a coach, from their next request.

    API keys and the password stay: for a stolen account, `send-reset` first.
    """
    person = await administration.end_sessions(operator, email)
    facts = {"id": person["id"], "sessions": person["sessions"]}
    report(f"{person['sessions']} sessions ended", facts, as_json=as_json)


@click.command("reset-second-factor")
@email_argument
@as_operator
async def reset_second_factor(operator: administration.Operator, email: str, *, as_json: bool) -> None:
    """Remove the second factor of EMAIL, and sign out all devices: for an owner who has lost it and the recovery codes.

    Make sure who asks: the password alone signs in then. The user gets a mail.
    """
    person_id = await administration.reset_second_factor(operator, email)
    report(f"The second factor of {email} is removed", {"id": person_id}, as_json=as_json)


# --- The group of the operator's commands, and the lists of storage and of what operators have done -------------------


@click.group()
def admin() -> None:
    """Administer the service: companies, people, jobs, mail, push, keys and storage.

    The commands work while services run on the same database, the embedded one too, and take effect at once in all of
    them. Every command is recorded with your user name: `admin actions` lists that. With --json they print one object
    in each line. Exit code: 0 done, 1 refused, with one sentence on standard error; 2 wrong usage.

    \b
    coaching-service admin companies list
    coaching-service admin companies suspend olga@example.com "Invoice 2026-118 is not paid"
    """


for group in (companies, people, jobs, mail, push, keys, reset_second_factor):
    admin.add_command(group)


def _used(row: administration.CompanyUsage) -> str | None:
    """Return how much of its quota a company uses: the greater of files and bytes; None without a quota."""
    shares = [used / most for used, most in ((row["files"], row["maxFiles"]), (row["bytes"], row["maxBytes"])) if most]
    return f"{max(shares):.0%}" if shares else None


_USAGE: tuple[Column[administration.CompanyUsage], ...] = (
    Column("ID", 24, lambda row: row["id"]),
    Column("FILES", 8, lambda row: row["files"], right=True),
    Column("STORAGE", 9, lambda row: format_bytes(row["bytes"]), right=True),
    Column("USED", 5, _used, right=True),
    Column("NAME", 0, lambda row: row["name"]),
)


@admin.command()
@as_operator
async def storage(operator: administration.Operator, *, as_json: bool) -> None:
    """List the files of each company: how many, and their size; thumbnails count as files of their own.

    USED is the part of MAX_STORAGE_BYTES_PER_COMPANY or MAX_FILES_PER_COMPANY, the greater of both.

    \b
    coaching-service admin storage
    coaching-service admin storage --json | jq -s 'sort_by(-.bytes)[:10]'
    """
    await print_list(administration.iterate_usage(operator), _USAGE, as_json=as_json, empty="There are no companies")


_ACTIONS: tuple[Column[OperatorAction], ...] = (
    Column("TIME (UTC)", 16, lambda row: format_time(row["createdAt"])),
    Column("OPERATOR", 16, lambda row: row["operator"]),
    Column("ACTION", 24, lambda row: row["action"]),
    Column("SUBJECT", 0, lambda row: row["subjectId"]),
)


@admin.command()
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Number of actions.")
@as_operator
async def actions(operator: administration.Operator, limit: int, *, as_json: bool) -> None:
    """List what operators have done with `admin`, newest first.

    The log has identifiers and reasons, and stays when a company is erased.
    """
    rows = audit.iterate_operator_actions(operator.services, limit)
    await print_list(rows, _ACTIONS, as_json=as_json, empty="There are no actions")

"""Companies: list, show, suspend, resume, export and erase."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from coaching_service.command_line.admin.running import (
    Column,
    as_operator,
    company_argument,
    format_bytes,
    format_time,
    json_option,
    print_fields,
    print_json,
    print_list,
    report,
    run_as_operator,
)
from coaching_service.command_line.options import data_option
from coaching_service.command_line.running import validate_with
from coaching_service.command_line.transfer import write_export
from coaching_service.core.validation import Text
from coaching_service.lifecycle import administration
from coaching_service.lifecycle.administration import CoachSummary, CompanyFigures, Operator

_COLUMNS: tuple[Column[CompanyFigures], ...] = (
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
async def list_companies(operator: Operator, state: str | None, *, as_json: bool) -> None:
    """List all companies, oldest first: owner, date of creation, clients, storage and state.

    They are printed as they are read. Sandboxes are left out.
    """
    rows = (row async for row in administration.iterate_companies(operator) if state in (None, row["state"]))
    await print_list(rows, _COLUMNS, as_json=as_json, empty="There is no such company")


@companies.command()
@company_argument
@as_operator
async def show(operator: Operator, company: str, *, as_json: bool) -> None:
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
            *(("Coach", _describe(coach)) for coach in row["coaches"]),
        ]
    )


def _describe(coach: CoachSummary) -> str:
    return f"{coach['name']} <{coach['email']}>, {coach['role'].lower()}"


@companies.command()
@company_argument
@click.argument("reason", callback=validate_with(Text()))
@as_operator
async def suspend(operator: Operator, company: str, reason: str, *, as_json: bool) -> None:
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
async def resume(operator: Operator, company: str, *, as_json: bool) -> None:
    """End the suspension of a company: the same keys, sessions and links work again, webhooks and jobs continue."""
    company_id = await administration.find_company_id(operator, company)
    await administration.resume_company(operator, company_id)
    report(f"{company_id} is active", {"id": company_id, "state": "active"}, as_json=as_json)


@companies.command()
@company_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@as_operator
async def export(operator: Operator, company: str, file: Path, *, as_json: bool) -> None:
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

    async def read_company(operator: Operator) -> CompanyFigures:
        return await administration.get_company(operator, await administration.find_company_id(operator, company))

    async def work(operator: Operator) -> None:
        await administration.erase_company(operator, company_id)
        message = f"{company_id} is deleted; a running service erases its data"
        report(message, {"id": company_id, "state": "erased"}, as_json=as_json)

    row = run_as_operator(data, read_company)
    company_id, name = row["id"], row["name"]
    if not yes and click.prompt(f"Type the name of the company, {name}, to erase it", err=True) != name:
        raise click.ClickException("That is not the name of the company: nothing was erased")
    run_as_operator(data, work)

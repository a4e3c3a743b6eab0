"""Companies: list, show, suspend, resume, export and erase."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn

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
)
from coaching_service.command_line.options import data_option
from coaching_service.command_line.running import console, validate_with
from coaching_service.core.validation import Text
from coaching_service.integrations import commands
from coaching_service.lifecycle.administration import service
from coaching_service.lifecycle.administration.models import CoachSummary, CompanyFigures
from coaching_service.lifecycle.administration.service import Operator

_COLUMNS = (
    Column("ID", 24),
    Column("STATE", 9),
    Column("CREATED", 10),
    Column("CLIENTS", 7, right=True),
    Column("STORAGE", 9, right=True),
    Column("OWNER", 28),
    Column("NAME", 0),
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
@json_option
@data_option
def list_companies(state: str | None, as_json: bool, data: Path | None) -> None:
    """List all companies, oldest first: owner, date of creation, clients, storage and state.

    They are printed as they are read. Sandboxes are left out.
    """

    async def work(operator: Operator) -> None:
        rows = (row async for row in service.iterate_companies(operator) if state in (None, row["state"]))
        await print_list(rows, _COLUMNS, _cells, as_json=as_json, empty="There is no such company")

    as_operator(data, work)


def _cells(row: CompanyFigures) -> tuple[str, ...]:
    return (
        str(row["id"]),
        row["state"],
        f"{row['createdAt']:%Y-%m-%d}",
        str(row["activeClients"] + row["archivedClients"]),
        format_bytes(row["bytes"]),
        "-" if row["owner"] is None else row["owner"]["email"],
        row["name"],
    )


@companies.command()
@company_argument
@json_option
@data_option
def show(company: str, as_json: bool, data: Path | None) -> None:
    """Show one company with its coaches."""

    async def work(operator: Operator) -> None:
        row = await service.get_company(operator, await service.find_company_id(operator, company))
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

    as_operator(data, work)


def _describe(coach: CoachSummary) -> str:
    return f"{coach['name']} <{coach['email']}>, {coach['role'].lower()}"


@companies.command()
@company_argument
@click.argument("reason", callback=validate_with(Text()))
@json_option
@data_option
def suspend(company: str, reason: str, as_json: bool, data: Path | None) -> None:
    """Suspend a company at once; its data stays, and `resume` restores everything.

    Its API keys, the sessions of its coaches and clients, assistants, calendar links and links to files get 403 with
    the code COMPANY_SUSPENDED from their next request; its webhooks and jobs pause. REASON is for you: it is stored
    with the company and in the log of the operator, and never sent.
    """

    async def work(operator: Operator) -> None:
        company_id = await service.find_company_id(operator, company)
        await service.suspend_company(operator, company_id, reason)
        report(f"{company_id} is suspended", {"id": company_id, "state": "suspended"}, as_json=as_json)

    as_operator(data, work)


@companies.command()
@company_argument
@json_option
@data_option
def resume(company: str, as_json: bool, data: Path | None) -> None:
    """End the suspension of a company: the same keys, sessions and links work again, webhooks and jobs continue."""

    async def work(operator: Operator) -> None:
        company_id = await service.find_company_id(operator, company)
        await service.resume_company(operator, company_id)
        report(f"{company_id} is active", {"id": company_id, "state": "active"}, as_json=as_json)

    as_operator(data, work)


@companies.command()
@company_argument
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@data_option
def export(company: str, file: Path, as_json: bool, data: Path | None) -> None:
    """Write everything of a company to FILE, a ZIP archive that `coaching-service import` reads.

    A suspended company can be exported too.
    """

    async def work(operator: Operator) -> None:
        company_id = await service.find_company_id(operator, company)
        ctx = replace(await operator.acting_in(company_id), operation="exportCompany")
        with Progress(TextColumn("Exporting"), DownloadColumn(), TimeElapsedColumn(), console=console) as bar:
            task = bar.add_task("")
            size = await commands.export_company(ctx, file, lambda done: bar.update(task, completed=done))
        await operator.record("company.exported", company_id)
        report(f"{file}: {size} bytes", {"id": company_id, "file": str(file), "bytes": size}, as_json=as_json)

    as_operator(data, work)


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
        return await service.get_company(operator, await service.find_company_id(operator, company))

    async def work(operator: Operator) -> None:
        await service.erase_company(operator, company_id)
        message = f"{company_id} is deleted; a running service erases its data"
        report(message, {"id": company_id, "state": "erased"}, as_json=as_json)

    row = as_operator(data, read_company)
    company_id, name = row["id"], row["name"]
    if not yes and click.prompt(f"Type the name of the company, {name}, to erase it", err=True) != name:
        raise click.ClickException("That is not the name of the company: nothing was erased")
    as_operator(data, work)

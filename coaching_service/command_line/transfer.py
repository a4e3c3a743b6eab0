"""Exporting a company to a file, and importing a file into one."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Literal, TypedDict, Unpack, cast, get_args

import click
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import as_owner, console, on_database, with_services
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import InvalidFields
from coaching_service.core.text import write_rows
from coaching_service.integrations import commands
from coaching_service.integrations.history_files.tables import Format
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import models as import_models
from coaching_service.library.imported_names import read_answers
from coaching_service.people.account import LoadUnit
from coaching_service.people.customers.models import OnConflict
from coaching_service.people.jobs import StoredJob

_OPTIONS = {
    "LOAD_UNIT": "--load-unit",
    "DISTANCE_UNIT": "--distance-unit",
    "DURATION_UNIT": "--duration-unit",
    "DATE_ORDER": "--date-order",
    "DECIMAL_SIGN": "--decimal-sign",
}


class _Answers(TypedDict):
    format: import_models.ImportFormat | None
    load_unit: LoadUnit | None
    distance_unit: import_models.DistanceUnit | None
    duration_unit: import_models.DurationUnit | None
    date_order: DateOrder | None
    decimal_sign: DecimalSign | None
    exercises: tuple[str, ...]
    clients: tuple[str, ...]
    columns: tuple[str, ...]


@click.command("export")
@click.option("--email", required=True, help="Sign-in address of the owner of the company.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@on_database()
async def export_company(services: Services, email: str, file: Path) -> None:
    """Write everything of a company to FILE, a ZIP archive: account, libraries and all clients with their files.

    `docs/export-format.md` describes it; `import` reads it.
    """
    click.echo(f"{file}: {await write_export(await as_owner(services, email), file)} bytes")


async def write_export(ctx: Context, file: Path) -> int:
    """Write the export of the company of `ctx` to a file, and show the progress; returns the number of bytes."""
    with Progress(TextColumn("Exporting"), DownloadColumn(), TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("")
        return await commands.export_company(ctx, file, lambda done: bar.update(task, completed=done))


def _pairs(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    if any("=" not in value for value in values):
        raise click.BadParameter("write it as NAME=VALUE", param=parameter)
    return values


@click.command("import")
@click.option(
    "--email",
    help="Sign-in address of the owner of the company. Not needed with --customer, unless clients of several companies "
    "have that address.",
)
@click.option("--customer", help="E-mail address of the client whose training history the file has.")
@click.option("--dry-run", is_flag=True, help="Only check the file, and list its problems, questions and names.")
@click.option(
    "--format",
    type=click.Choice([*get_args(Format), "customers"]),
    help="What the file is. [default: as its headings say]",
)
@click.option("--load-unit", type=click.Choice(get_args(LoadUnit)), help="Unit of loads that the file has without one.")
@click.option(
    "--distance-unit",
    type=click.Choice(get_args(import_models.DistanceUnit)),
    help="Unit of distances that have none.",
)
@click.option(
    "--duration-unit",
    type=click.Choice(get_args(import_models.DurationUnit)),
    help="Unit of durations that have none.",
)
@click.option("--decimal-sign", type=click.Choice(get_args(DecimalSign)), help="Sign before decimals.")
@click.option("--date-order", type=click.Choice(get_args(DateOrder)), help="Order of dates such as 03/04/2026.")
@click.option(
    "--exercise",
    "exercises",
    multiple=True,
    callback=_pairs,
    help="What a name of an exercise becomes: NAME=ID, NAME=create or NAME=skip. Repeatable.",
)
@click.option(
    "--client",
    "clients",
    multiple=True,
    callback=_pairs,
    help="Who a client in the file is: NAME=ID, NAME=create or NAME=skip. Repeatable.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    callback=_pairs,
    help="What a column has: HEADING=FIELD, such as Movement=exercise. Repeatable.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    default="error",
    show_default=True,
    help="Rows of clients whose external identifier a client has: report them, or update the client.",
)
@click.option("--report", type=click.File("wb"), help="Write the problems to this file, as CSV.")
@click.argument("file", type=click.File("rb"))
@data_option
def import_file(
    email: str | None,
    customer: str | None,
    dry_run: bool,
    on_conflict: OnConflict,
    report: IO[bytes] | None,
    file: IO[bytes],
    data: Path | None,
    **options: Unpack[_Answers],
) -> None:
    """Import FILE: an export of a company, a table of clients, or training history of another application.

    Nothing is mailed. If it is interrupted, the running service continues, or the next import.
    """
    if email is None and customer is None:
        raise click.UsageError("--email or --customer is required")

    async def work(services: Services) -> None:
        ctx = await as_owner(services, email) if email else await _as_owner_of_client(services, customer or "")
        answers = _read_answers(options)
        if customer:
            answers["customerId"] = await commands.find_client(ctx, customer)
        columns = (TextColumn("Importing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=None)
            job = await commands.import_file(
                ctx,
                file,
                Path(file.name).name,
                dry_run=dry_run,
                on_conflict=on_conflict,
                answers=answers,
                on_progress=lambda done, total: bar.update(task, completed=done, total=total or None),
            )
        _show(job, report)

    with_services(settings_with(data), work)


async def _as_owner_of_client(services: Services, email: str) -> Context:
    owners = await commands.list_owners_of_client(services, email)
    if len(owners) == 1:
        return owners[0]
    if not owners:
        raise click.ClickException(f"No client has the address {email}")
    raise click.ClickException(
        f"Clients of {len(owners)} companies have the address {email}: name the owner by --email"
    )


def _read_answers(options: _Answers) -> import_models.ImportAnswers:
    """Return the options as answers about the file. Raises ClickException for one that is none."""
    try:
        names = read_answers(_by_name(options["exercises"]))
        clients = read_answers(_by_name(options["clients"]), "customers")
    except InvalidFields as error:
        raise click.ClickException(error.errors[0]["message"]) from None
    columns = _by_name(options["columns"])
    if problem := import_models.find_wrong_columns(columns):
        raise click.ClickException(f"--column: {problem}")
    return {
        "format": options["format"],
        "customerId": None,
        "loadUnit": options["load_unit"],
        "distanceUnit": options["distance_unit"],
        "durationUnit": options["duration_unit"],
        "dateOrder": options["date_order"],
        "decimalSign": options["decimal_sign"],
        "names": names,
        "customers": clients,
        "columns": columns,
    }


def _by_name(pairs: tuple[str, ...]) -> dict[str, str]:
    """Return what names stand for; a name may have `=` in it."""
    return {name.strip(): value.strip() for name, _, value in (pair.rpartition("=") for pair in pairs)}


def _show(job: StoredJob, report: IO[bytes] | None) -> None:
    """Print the problems, the questions and names of a dry run, and what was imported. Raises ClickException."""
    if report is not None:
        rows = [
            (each.get("line"), each["entry"], each["field"], each["code"], each["message"])
            for each in import_models.list_problems(job["errors"], import_models.table_result(job["result"]))
        ]
        report.write(write_rows([("line", "entry", "field", "code", "message"), *rows]))
    else:
        for error in import_models.list_problems(job["errors"], import_models.table_result(job["result"])):
            click.echo(" ".join(filter(None, (f"{error['entry']}:", error["field"], error["message"]))), err=True)
    if result := import_models.table_result(job["result"]):
        _show_table(result, is_failed=job["status"] == "failed")
    if job["status"] == "failed" or job["result"] is None:
        raise click.ClickException("The file cannot be imported")
    if result is None:
        archive = cast("import_models.ImportResult", job["result"])
        counts = ", ".join(f"{count} {name}" for name, count in archive["imported"].items())
        verb = "Would import" if archive["dryRun"] else "Imported"
        click.echo(f"{verb}: {counts or 'nothing'}; left out: {archive['failed']}")


def _show_table(result: import_models.HistoryResult, *, is_failed: bool) -> None:
    for question in result["questions"]:
        option = _OPTIONS.get(question["code"])
        answers = [f"{option} {each}" for each in question["options"]] if option else []
        if question["code"] == "CUSTOMER":
            answers = [f"--client '{question['name']}={each}'" for each in question["options"]] or ["--customer EMAIL"]
        click.echo(f"{question['message']} {' or '.join(answers)}")
    if result["dryRun"]:
        for name in result["names"]:
            new = "left out" if name["answer"] == "skip" else "a new exercise"
            meant = name["match"]["name"] if name["match"] else new
            click.echo(f"{name['sets']:>6} sets  {name['name']} → {meant}")
    if not is_failed:
        verb, created = "Would import" if result["dryRun"] else "Imported", result["created"]
        kinds: tuple[Literal["sessions", "sets", "exercises", "customers"], ...]
        kinds = ("sessions", "sets", "exercises", "customers")
        counts = ", ".join(f"{created[name]} {name}" for name in kinds if created[name])
        rows = f"; rows: {result['rows']}"
        if result["format"] == "customers":
            counts, rows = (f"{result['imported']} customers" if result["imported"] else ""), ""
        click.echo(f"{verb}: {counts or 'nothing'}{rows}; left out: {result['reported']}")

"""Companies: creating them and their keys, sample data, export and import."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Literal, cast, get_args

import click
from marshmallow import ValidationError
from rich import progress as bars

from coaching_service import demo, seeding
from coaching_service.command_line import running
from coaching_service.command_line.options import data_option, settings_with
from coaching_service.command_line.running import as_owner, on_database, with_services
from coaching_service.core.auth import new_master_key
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import InvalidFields
from coaching_service.core.text import write_rows
from coaching_service.core.validation import Email, Text, Timezone
from coaching_service.demo import EMAIL
from coaching_service.installation.backup.contents import new_identity
from coaching_service.integrations import commands
from coaching_service.integrations.history_files.tables import Format
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign
from coaching_service.integrations.history_import import models as import_models
from coaching_service.library.exercises import service as exercises
from coaching_service.library.imported_names import read_answers
from coaching_service.people import api_keys, team
from coaching_service.people.account import LoadUnit
from coaching_service.people.customers.models import OnConflict
from coaching_service.people.identities.passwords import NewPassword, hash_password
from coaching_service.people.jobs import StoredJob


@click.command("create-company")
@click.argument("company", callback=running.validate_with(Text()))
@click.option("--name", required=True, callback=running.validate_with(Text()), help="The owner's name.")
@click.option("--email", required=True, callback=running.validate_with(Email()), help="The owner's sign-in address.")
@click.option("--password", help="12 characters or more; asked for without it. Other users of the machine can see it.")
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, its first line.")
@click.option(
    "--timezone",
    default="UTC",
    show_default=True,
    callback=running.validate_with(Timezone()),
    help="IANA name, such as Europe/Madrid.",
)
@click.option("--load-unit", type=click.Choice(["kg", "lb"]), default="kg", show_default=True)
@data_option
@click.pass_context
def create_company(
    command: click.Context,
    company: str,
    name: str,
    email: str,
    password: str | None,
    password_stdin: bool,
    timezone: str,
    load_unit: str,
    data: Path | None,
) -> None:
    """Create COMPANY with its owner, and print an API key of the owner."""
    if password is not None and password_stdin:
        raise click.UsageError("Use --password or --password-stdin, not both.", command)
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif password is None:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    try:
        new_password: str = NewPassword().deserialize(password)
    except ValidationError as error:
        raise click.BadParameter(f"{error.messages[0]}.", command, param_hint="--password") from None

    async def work(services: Services) -> None:
        ctx = Context(services)
        password_hash = await hash_password(new_password)
        owner = await team.create_company(
            ctx, company, name, email, password_hash, timezone=timezone, load_unit=load_unit
        )
        key = await api_keys.create(ctx.acting_as(owner), "Command line")
        click.echo(f"Company  {owner.company.id}\nKey      {key['key']}")

    running.with_services(settings_with(data), work, creates=True)


@click.command("create-key")
@click.option("--email", required=True, help="Sign-in address of the coach the key belongs to.")
@click.option("--name", default="Command line", show_default=True, help="Name of the key.")
@click.option("--outreach", is_flag=True, help="Assistants with it may contact people and change many clients at once.")
@running.on_database()
async def create_key(services: Services, email: str, name: str, *, outreach: bool) -> None:
    """Create an API key for a coach and print it."""
    coach = await running.find_coach(services, email)
    key = await api_keys.create(Context(services).acting_as(coach), name, {"outreach": outreach})
    click.echo(key["key"])


# --- Making keys: master keys, and keys for backups -------------------------------------------------------------------


@click.command("new-secret-key")
def new_secret_key() -> None:
    """Print a new master key for SECRET_KEYS. Store it safely: data encrypted with it cannot be read without it."""
    click.echo(new_master_key())


@click.command("new-backup-key")
def new_backup_key() -> None:
    """Print a new private key for encrypted backups, and its public key, in the format of age.

    The public key is for BACKUP_RECIPIENTS. Store the private key with the master key, in a password manager or on
    paper, and not on the machine that makes the backups: without it no backup can be read.

    \b
      coaching-service new-backup-key > backup.key
    """
    private, public = new_identity()
    click.echo(f"# public key: {public}\n{private}")


# --- Sample data ------------------------------------------------------------------------------------------------------


@click.command()
@click.option("--clients", type=click.IntRange(1), help="Number of clients to add, to try large companies.")
@click.option(
    "--email",
    default=EMAIL,
    show_default=True,
    help="Sign-in address of a coach of the company that receives --clients.",
)
@running.on_database(creates=True)
async def seed(services: Services, clients: int | None, email: str) -> None:
    """Publish the shared exercise library and create the demo company. Running it again changes nothing."""
    written = await exercises.publish_shared(services)
    facts = await demo.ensure_demo(services, lambda subject: running.console.print(f"Creating {subject} ..."))
    await commands.ensure_sample_proposal(services)
    click.echo(f"{written} shared exercises written; the demo company is {facts['companyId']}")
    if clients:
        ctx = Context(services).acting_as(await running.find_coach(services, email))
        with seeding.progress_bar(running.console, clients) as report_progress:
            await seeding.seed_clients(services, ctx, clients, report_progress)
        click.echo(f"{clients} clients added to the company of {email}")


# --- Exporting a company to a file, and importing a file into one -----------------------------------------------------


_OPTIONS = {
    "LOAD_UNIT": "--load-unit",
    "DISTANCE_UNIT": "--distance-unit",
    "DURATION_UNIT": "--duration-unit",
    "DATE_ORDER": "--date-order",
    "DECIMAL_SIGN": "--decimal-sign",
}


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
    columns = (bars.DownloadColumn(), bars.TimeElapsedColumn())
    with running.progress("Exporting", None, *columns, transient=False) as update:
        return await commands.export_company(ctx, file, lambda done: update(completed=done))


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
    **options: Any,
) -> None:
    """Import FILE: an export of a company, a table of clients, or training history of another application.

    Nothing is mailed. If it is interrupted, the running service continues, or the next import.
    """
    if email is None and customer is None:
        raise click.UsageError("--email or --customer is required")

    async def work(services: Services) -> None:
        if email:
            ctx = await as_owner(services, email)
        elif len(owners := await commands.list_owners_of_client(services, customer or "")) == 1:
            [ctx] = owners
        else:
            several = f"Clients of {len(owners)} companies have the address {customer}: name the owner by --email"
            raise click.ClickException(several if owners else f"No client has the address {customer}")
        answers = _read_answers(options)
        if customer:
            answers["customerId"] = await commands.find_client(ctx, customer)
        columns = (bars.BarColumn(), bars.MofNCompleteColumn(), bars.TimeRemainingColumn())
        with running.progress("Importing", None, *columns, transient=False) as update:
            job = await commands.import_file(
                ctx,
                file,
                Path(file.name).name,
                dry_run=dry_run,
                on_conflict=on_conflict,
                answers=answers,
                on_progress=lambda done, total: update(completed=done, total=total or None),
            )
        _show(job, report)

    with_services(settings_with(data), work)


def _read_answers(options: Mapping[str, Any]) -> import_models.ImportAnswers:
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
    result = import_models.table_result(job["result"])
    problems = import_models.list_problems(job["errors"], result)
    if report is not None:
        titles = ("line", "entry", "field", "code", "message")
        report.write(write_rows([titles, *([each.get(title) for title in titles] for each in problems)]))
    else:
        for error in problems:
            click.echo(" ".join(filter(None, (f"{error['entry']}:", error["field"], error["message"]))), err=True)
    if result:
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

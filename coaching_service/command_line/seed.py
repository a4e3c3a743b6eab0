"""Sample data."""

from __future__ import annotations

import click

from coaching_service import demo, seeding
from coaching_service.command_line.running import console, find_coach, on_database
from coaching_service.core.database.context import Context, Services
from coaching_service.demo.company import EMAIL
from coaching_service.library.exercises import shared


@click.command()
@click.option("--clients", type=click.IntRange(1), help="Number of clients to add, to try large companies.")
@click.option(
    "--email",
    default=EMAIL,
    show_default=True,
    help="Sign-in address of a coach of the company that receives --clients.",
)
@on_database(creates=True)
async def seed(services: Services, clients: int | None, email: str) -> None:
    """Publish the shared exercise library and create the demo company. Running it again changes nothing."""
    written = await shared.publish(services)
    facts = await demo.ensure_demo(services, lambda subject: console.print(f"Creating {subject} ..."))
    click.echo(f"{written} shared exercises written; the demo company is {facts['companyId']}")
    if clients:
        ctx = Context(services).acting_as(await find_coach(services, email))
        with seeding.progress_bar(console, clients) as report_progress:
            await seeding.seed_clients(services, ctx, clients, report_progress)
        click.echo(f"{clients} clients added to the company of {email}")

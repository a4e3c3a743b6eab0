"""Starting the service."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import uvloop

from coaching_service import demo, logs, runtime
from coaching_service.command_line.running import data_option, existing_folder, settings_with
from coaching_service.core.database.connection import hosts_of
from coaching_service.core.database.context import Services
from coaching_service.library.exercises import shared


@click.command()
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on; 0 takes a free one [8080].")
@data_option
@click.option("--demo", "with_demo", is_flag=True, help="Create the demo company and write DIR/demo.json.")
def serve(host: str | None, port: int | None, data: Path | None, with_demo: bool) -> None:
    """Start the service; stop it with Ctrl-C or SIGTERM."""
    settings = settings_with(data, host=host, port=port)
    logs.configure(settings.log_format, settings.log_level)
    bound, settings = runtime.bind(settings)

    async def on_ready(services: Services) -> None:
        await shared.publish(services)
        if with_demo:
            demo_file = existing_folder(settings) / "demo.json"
            facts = await demo.ensure_demo(services)
        click.echo(f"Address  {services.base_url}\nDocs     {services.base_url}/docs")
        if with_demo:
            click.echo(f"Sign-in  {facts['email']}  {facts['password']}\nKey      {facts['apiKey']}")
        database = hosts_of(settings.mongodb_uri) if settings.mongodb_uri else settings.data_dir.absolute()
        click.echo(f"Data     {database}\nStop     Ctrl-C")
        sys.stdout.flush()
        if with_demo:
            demo.write_atomically(demo_file, facts)

    with bound, runtime.open_database(settings, runtime.stop_without_database) as opened:
        uvloop.run(runtime.serve(opened, bound, on_ready))

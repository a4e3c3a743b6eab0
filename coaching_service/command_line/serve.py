"""Starting the service."""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import uvloop

from coaching_service import demo, logs, runtime
from coaching_service.command_line.running import data_option, existing_folder, settings_with
from coaching_service.core.database.connection import hosts_of
from coaching_service.core.database.context import Services
from coaching_service.core.worker_connection import SupervisorConnection
from coaching_service.library.exercises import shared
from coaching_service.settings import Settings
from coaching_service.supervisor.plan import Plan, replace_process, socket_number


@click.command()
@click.option("--host", help="Address to listen on [127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65_535), help="Port to listen on; 0 takes a free one [8080].")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes that answer [cores minus 1, at least 1].")
@data_option
@click.option("--demo", "with_demo", is_flag=True, help="Create the demo company and write DIR/demo.json.")
@click.option("--worker-socket", type=int, hidden=True, help="Run one worker of a supervisor.")
def serve(
    host: str | None,
    port: int | None,
    workers: int | None,
    data: Path | None,
    with_demo: bool,
    worker_socket: int | None,
) -> None:
    """Start the service; stop it with Ctrl-C or SIGTERM. With several workers, SIGHUP replaces them by new ones."""
    if worker_socket is not None:
        _work(SupervisorConnection(worker_socket))
        return
    settings = settings_with(data, host=host, port=port, workers=workers)
    logs.configure(settings.log_format, settings.log_level)
    sockets, settings = runtime.bind(settings)
    if settings.worker_count() > 1:
        _supervise(settings, sockets, with_demo)
    with sockets, runtime.open_database(settings, runtime.stop_without_database) as opened:
        uvloop.run(runtime.serve(opened, sockets, _completion(settings, with_demo=with_demo)))


def _completion(settings: Settings, *, with_demo: bool) -> Callable[[Services], Awaitable[None]]:
    """Returns the function that completes a start once the database is prepared."""

    async def complete(services: Services) -> None:
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

    return complete


def _supervise(settings: Settings, sockets: runtime.Sockets, with_demo: bool) -> None:
    """Continue as the supervisor. Raises SettingsError before anything is created if the keys cannot be used."""
    settings.with_secret_keys().vault()
    replace_process(
        Plan(
            workers=settings.worker_count(),
            listening=sockets.api.fileno(),
            metrics_listening=socket_number(sockets.metrics),
            host=settings.host,
            port=settings.port,
            data_dir=str(settings.data_dir),
            is_embedded=settings.mongodb_uri is None,
            with_demo=with_demo,
            shutdown_seconds=settings.shutdown_seconds,
            log_format=settings.log_format,
            log_level=settings.log_level,
        )
    )


def _work(supervisor: SupervisorConnection) -> None:
    """Run one worker as its supervisor says."""
    instructions = supervisor.instructions
    data = Path(instructions.data_dir)
    settings = settings_with(data, host=instructions.host, port=instructions.port).with_secret_keys()
    logs.configure(settings.log_format, settings.log_level, instructions.worker)
    given = settings
    if instructions.embedded is not None:
        settings = settings.model_copy(update={"mongodb_uri": instructions.embedded})
    opened = runtime.OpenedDatabase(settings, is_embedded=instructions.embedded is not None)
    api = socket.socket(fileno=instructions.listening)
    metrics = instructions.metrics_listening
    on_ready = _completion(given, with_demo=instructions.with_demo)
    if not instructions.listens_at_once:  # the service runs already
        on_ready = _publish_library if instructions.prepares else _do_nothing
    with runtime.Sockets(api, None if metrics is None else socket.socket(fileno=metrics)) as sockets:
        uvloop.run(runtime.serve(opened, sockets, on_ready, supervisor))


async def _publish_library(services: Services) -> None:
    await shared.publish(services)


async def _do_nothing(_: Services) -> None:
    pass

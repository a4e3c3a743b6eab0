"""Serving in this process, alone or as a worker."""

from __future__ import annotations

import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import structlog
import uvloop

from coaching_service import logs, runtime, serving
from coaching_service.command_line.options import service_settings_with
from coaching_service.core.database.connection import hosts_of
from coaching_service.core.database.context import Services
from coaching_service.core.outbound import is_loopback
from coaching_service.library.exercises import service as exercises
from coaching_service.settings import Settings, Sockets
from coaching_service.supervisor import SupervisorConnection

log = structlog.get_logger("coaching_service")


def serve_alone(settings: Settings, sockets: Sockets, *, with_demo: bool) -> None:
    """Run the service in this process until it is stopped. Raises SettingsError, DatabaseUnavailable, OSError."""
    settings = _with_loopback(settings, with_demo=with_demo)
    with sockets, runtime.open_database(settings, serving.stop_without_database) as opened:
        uvloop.run(serving.serve(opened, sockets, _completion(settings, with_demo=with_demo)))


def work(worker_socket: int) -> None:
    """Run one worker as its supervisor says through this socket."""
    supervisor = SupervisorConnection(worker_socket)
    instructions, plan = supervisor.instructions, supervisor.instructions.plan
    settings = service_settings_with(Path(plan.data_dir), host=plan.host, port=plan.port).with_secret_keys()
    settings = _with_loopback(settings, with_demo=plan.with_demo)
    logs.configure(settings.log_format, settings.log_level, instructions.worker)
    given = settings
    if instructions.embedded is not None:
        settings = settings.on_embedded(instructions.embedded)
    opened = runtime.OpenedDatabase(settings, is_embedded=instructions.embedded is not None)
    api, metrics = socket.socket(fileno=plan.listening), plan.metrics_listening
    on_ready = _completion(given, with_demo=plan.with_demo)
    if not instructions.listens_at_once:  # the service runs already
        on_ready = exercises.publish_shared if instructions.prepares else _do_nothing
    with Sockets(api, None if metrics is None else socket.socket(fileno=metrics)) as sockets:
        uvloop.run(serving.serve(opened, sockets, on_ready, supervisor))


async def _do_nothing(_: Services) -> None:
    pass


def _with_loopback(settings: Settings, *, with_demo: bool) -> Settings:
    """Return settings with which webhooks reach this machine, if the demo is only for programs of this machine."""
    is_local = with_demo and is_loopback(settings.host)
    return settings.model_copy(update={"webhooks_allow_loopback": True}) if is_local else settings


def _completion(settings: Settings, *, with_demo: bool) -> Callable[[Services], Awaitable[object]]:
    """Return the function that completes a start once the database is prepared. Raises OSError without that folder."""
    demo_file = settings.data_dir / "demo.json"
    if with_demo:
        settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def complete(services: Services) -> None:
        await exercises.publish_shared(services)
        if with_demo:
            from coaching_service import demo
            from coaching_service.integrations import commands

            if not is_loopback(settings.host):
                log.warning(
                    "the demo company is for trying the service out, and others can reach this address",
                    host=settings.host,
                    demo_file=str(demo_file),
                )
            facts = await demo.ensure_demo(services)
            await commands.ensure_sample_proposal(services)
        click.echo(f"Address  {services.base_url}\nDocs     {services.base_url}/docs")
        if with_demo:
            if sys.stdout.isatty():  # else it may be a log file, which more people read
                click.echo(f"Sign-in  {facts['email']}  {facts['password']}\nKey      {facts['apiKey']}")
            else:
                click.echo(f"Sign-in  {facts['email']}, with the password and the API key in {demo_file}")
        database = hosts_of(settings.mongodb_uri) if settings.mongodb_uri else settings.data_dir.absolute()
        click.echo(f"Data     {database}\nStop     Ctrl-C")
        sys.stdout.flush()
        if with_demo:
            demo.write_atomically(demo_file, facts)

    return complete

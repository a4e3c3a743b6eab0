"""Starting the service."""

from __future__ import annotations

from pathlib import Path

import click

from coaching_service import logs
from coaching_service.command_line.options import data_option, service_settings_with
from coaching_service.memory import without_collection
from coaching_service.settings import bind
from coaching_service.supervisor import Plan, replace_process


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
        with without_collection():
            from coaching_service.command_line import serving  # imports the service, which a supervisor does not need
        serving.work(worker_socket)
        return
    settings = service_settings_with(data, host=host, port=port, workers=workers)
    logs.configure(settings.log_format, settings.log_level)
    sockets, settings = bind(settings)
    if settings.worker_count() > 1:
        settings.with_secret_keys().vault()  # before anything is created, if the keys cannot be used
        plan = Plan(
            workers=settings.worker_count(),
            listening=sockets.api.fileno(),
            metrics_listening=sockets.metrics.fileno() if sockets.metrics else None,
            host=settings.host,
            port=settings.port,
            data_dir=str(settings.data_dir),
            is_embedded=settings.mongodb_uri is None,
            with_demo=with_demo,
            shutdown_seconds=settings.shutdown_seconds,
            log_format=settings.log_format,
            log_level=settings.log_level,
        )
        replace_process(plan)
    with without_collection():
        from coaching_service.command_line import serving
    serving.serve_alone(settings, sockets, with_demo=with_demo)

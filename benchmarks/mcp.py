"""`python -m benchmarks.mcp`: tools compared with REST, and our endpoint with the SDK's own application."""

from __future__ import annotations

import os
import urllib.request
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from statistics import median

import click
import orjson
import uvloop
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import slots, world
from benchmarks.five_rows import KEY
from benchmarks.mcp_messages import MODERN, envelope
from benchmarks.servers import (
    Server,
    child_named,
    log_of,
    running,
    running_service,
    temporary_settings,
    wait_until_idle,
)

_LIST = "/coach/customers?archived=false&pageSize=50&pageNum=1"
_SCRIPT = str(Path(__file__).with_name("message.lua"))


def _message(folder: Path, tool: str, arguments: dict[str, object], *, modern: bool) -> list[str]:
    """The arguments with which wrk calls a tool: the script, the body, and the headers of the era."""
    params: dict[str, object] = {"name": tool, "arguments": arguments}
    headers = []
    if modern:
        params["_meta"] = envelope()
        headers = [f"MCP-Protocol-Version={MODERN}", "Mcp-Method=tools/call", f"Mcp-Name={tool}"]
    body = folder / f"{tool}-{'new' if modern else 'old'}.json"
    body.write_bytes(orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    return [str(body), *headers]


def _check(server: Server, key: str, message: list[str]) -> None:
    """Call the tool once, so that the SDK is loaded before anything is measured. Raises RuntimeError if it fails."""
    body, *headers = message
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "X-API-Key": key}
    sent |= dict(header.split("=", 1) for header in headers)
    request = urllib.request.Request(f"{server.base_url}/mcp", Path(body).read_bytes(), sent)
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = orjson.loads(response.read())
    if "error" in answer or answer["result"].get("isError"):
        raise RuntimeError(f"{server.name} does not answer the tool: {answer}")


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=6, show_default=True)
@click.option("--connections", type=click.IntRange(1), default=16, show_default=True)
@click.option("--clients", type=click.IntRange(200), default=10_000, show_default=True)
def main(rounds: int, connections: int, clients: int) -> None:
    """Requests a second, as ratios of arms in the same round of one-second slots; every other round reversed.

    \b
      list_customers (50 of them) to the same page over REST              target 0.5
      five rows from memory to the SDK's own Starlette app, 2025 era    target 2.0
      the same, 2026-07-28                                                target 1.3
    """
    console = Console(stderr=True)
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[0], allowed[min(1, len(allowed) - 1)]
    os.sched_setaffinity(0, {cores[1]})
    with ExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key = uvloop.run(world.company(settings, clients, console))
        service = stack.enter_context(running_service(settings, cores[0]))
        ours, sdk = (
            stack.enter_context(running(arm, ["benchmarks.five_rows", arm], {}, cores[0], log_of(settings, arm)))
            for arm in ("ours", "sdk")
        )
        mongod = child_named("mongod")

        def call(server: Server, key: str, message: list[str]) -> list[str]:
            return ["-s", _SCRIPT, f"{server.base_url}/mcp", "--", *message, f"X-API-Key={key}"]

        page = _message(settings.data_dir, "list_customers", {"pageSize": 50}, modern=False)
        rows = [_message(settings.data_dir, "five_rows", {}, modern=modern) for modern in (False, True)]
        _check(service, key, page)
        for server, message in product((ours, sdk), rows):
            _check(server, KEY, message)
        wait_until_idle([service.pid, ours.pid, sdk.pid])
        arms = {
            ("list_customers / REST", 0.5): (
                (service, call(service, key, page)),
                (service, ["-H", f"X-API-Key: {key}", service.base_url + _LIST]),
            ),
            ("five rows / SDK, 2025 era", 2.0): ((ours, call(ours, KEY, rows[0])), (sdk, call(sdk, KEY, rows[0]))),
            ("five rows / SDK, 2026-07-28", 1.3): ((ours, call(ours, KEY, rows[1])), (sdk, call(sdk, KEY, rows[1]))),
        }
        ratios: dict[tuple[str, float], list[tuple[float, float]]] = {arm: [] for arm in arms}
        with Progress(console=console) as bar:
            task = bar.add_task("Measuring", total=(rounds + 1) * len(arms))
            for number in range(rounds + 1):
                for arm, pair in arms.items() if number % 2 else reversed(arms.items()):
                    rates = [slots.run(what, connections, server.pid, mongod).rate for server, what in pair]
                    if number:
                        ratios[arm].append((rates[0], rates[1]))
                    bar.advance(task)
    _show(ratios, connections)


def _show(ratios: dict[tuple[str, float], list[tuple[float, float]]], connections: int) -> None:
    table = Table(title=f"Requests a second, {connections} connections; least / median / most of the rounds")
    for heading in ("What", "Service", "Compared with", "Ratio", "Target"):
        table.add_column(heading)
    for (name, target), pairs in ratios.items():
        quotients = [ours / theirs for ours, theirs in pairs]
        spread = " / ".join(f"{figure(quotients):.2f}" for figure in (min, median, max))
        middle = [f"{median(each):.0f}" for each in zip(*pairs, strict=True)]
        table.add_row(name, *middle, spread, f"{target} {'reached' if median(quotients) >= target else 'missed'}")
    Console().print(table)


if __name__ == "__main__":
    main()

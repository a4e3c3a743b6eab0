"""`python -m benchmarks.open_pages`: what open pages of messages cost a worker while nothing happens, and a message then."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import click
import uvloop

from benchmarks.servers import running_service, temporary_settings
from benchmarks.slots import cpu_seconds
from coaching_service import features, runtime
from coaching_service.core.database.context import Context
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.sessions import web_sessions
from coaching_service.people.team import service as team
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings

TARGET_SHARE = 0.1  # of a core, of all open pages
_PATH = "/train/messages/live"
assert features.ROUTES  # the consequences of a message are subscribed there


async def _make_company(settings: Settings, pages: int) -> tuple[str, str, list[str]]:
    """Return a key, a client, and the token of a session of each client."""
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        owner = await team.create_company(Context(services), "Bench", "Owner", "o@bench.test", "no hash")
        ctx = Context(services).acting_as(owner)
        await seed_clients(services, ctx, pages)
        clients = await services.db["customers"].find({"companyId": ctx.company_id}).to_list(pages)
        tokens = [(await web_sessions.start_for_customer(ctx, each["_id"], "Bench")).token for each in clients]
        return str((await api_keys.create(ctx, "Bench"))["key"]), str(clients[0]["_id"]), tokens


async def _follow(http: aiohttp.ClientSession, token: str, news: asyncio.Event) -> None:
    """Ask as the script of an open page does, until cancelled."""
    headers, query = {"Cookie": f"coach_session={token}", "X-Live": "1"}, ""
    while True:
        async with http.get(_PATH + query, headers=headers) as response:
            if response.status == 503:  # all begin at once: it is busy
                await asyncio.sleep(int(response.headers.get("Retry-After", "1")))
                continue
            response.raise_for_status()
            answer = await response.json()
        query = f"?after={answer['after']}"
        if answer["hasNews"]:
            news.set()


def _resident(pid: int) -> float:
    """The memory of a process in megabytes."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) / 1024


async def _share(pid: int, seconds: float) -> float:
    """The share of a core that a process uses."""
    before = cpu_seconds(pid)
    await asyncio.sleep(seconds)  # the CPU time of this interval is what is measured
    return (cpu_seconds(pid) - before) / seconds


async def _run(pages: int, seconds: float) -> bool:
    async with AsyncExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        key, client, tokens = await _make_company(settings, pages)
        connections = {"MAX_CONNECTIONS_PER_ADDRESS": "1000"}  # all pages are on this machine
        server = stack.enter_context(running_service(settings, 0, **connections))
        connector = aiohttp.TCPConnector(limit=0)
        http = await stack.enter_async_context(aiohttp.ClientSession(server.base_url, connector=connector))
        await _share(server.pid, seconds)  # the figures of the new clients are renewed
        idle, memory = await _share(server.pid, seconds), _resident(server.pid)
        news = asyncio.Event()
        following = [asyncio.create_task(_follow(http, token, news)) for token in tokens]
        await asyncio.sleep(5)  # until all pages wait for news
        busy, more = await _share(server.pid, seconds), _resident(server.pid) - memory
        began = time.perf_counter()
        message = http.post(f"/coach/customers/{client}/messages", json={"text": "Hello"}, headers={"X-API-Key": key})
        async with message as response:
            response.raise_for_status()
        await asyncio.wait_for(news.wait(), 30)
        took = time.perf_counter() - began
        for task in following:
            task.cancel()
        click.echo(
            f"{pages} open pages: {busy:.1%} of a core, {idle:.1%} without; {more:.1f} MB more than {memory:.0f}; "
            f"a message after {took:.2f} s"
        )
        return busy - idle < TARGET_SHARE


@click.command()
@click.option("--pages", type=click.IntRange(1, 1000), default=200, show_default=True)
@click.option("--seconds", type=float, default=30.0, show_default=True, help="Of each measurement.")
def main(pages: int, seconds: float) -> None:
    """Measure open pages of messages; exit code 1 above a tenth of a core."""
    sys.exit(0 if uvloop.run(_run(pages, seconds)) else 1)


if __name__ == "__main__":
    main()

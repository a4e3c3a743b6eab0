"""`python -m benchmarks.fairness`: one company's requests, alone and next to another company that sends too many."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from statistics import median, quantiles

import aiohttp
import click
import uvloop
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.servers import running_service, temporary_settings
from coaching_service import runtime
from coaching_service.core.database.context import Context
from coaching_service.people import api_keys, team
from coaching_service.seeding import seed_clients
from coaching_service.settings import Settings

TARGET = 2.0
_NOISY_CLIENTS, _QUIET_CLIENTS = 1_000, 100
_QUIET_CONNECTIONS = 2
_SEARCHES, _UPLOADS, _EXPORTS, _ARRAYS = 64, 32, 16, 8
_UPLOAD_BYTES, _HALF_OF_EXPORT = 15_000_000, 300_000
_RAMP_SECONDS = 0.5
# The program that sends the requests of the noisy company stands for other machines, whose CPU the service does not
# share: it has the lowest priority, and does not run on the service's core.
_NOISY_PRIORITY, _SERVICE_CORE = 19, 0


@dataclass(frozen=True)
class Companies:
    """The keys of both companies, and one client of each."""

    noisy_key: str
    noisy_client: str
    quiet_key: str
    quiet_client: str


@dataclass
class Figures:
    """Milliseconds of the quiet company's requests, one list for each slot of time."""

    alone: list[list[float]] = field(default_factory=list)
    next_to: list[list[float]] = field(default_factory=list)
    failures: int = 0
    noise: int = 0


async def _make_companies(settings: Settings) -> Companies:
    keys: list[str] = []
    async with runtime.open_services(settings) as services:
        await runtime.make_indexes(services)
        for name, clients in (("noisy", _NOISY_CLIENTS), ("quiet", _QUIET_CLIENTS)):
            owner = await team.create_company(Context(services), name, "Owner", f"{name}@bench.test", "no hash")
            ctx = Context(services).acting_as(owner)
            await seed_clients(services, ctx, clients)
            client = await services.db["customers"].find_one({"companyId": owner.company.id, "archived": {"$ne": True}})
            keys += [str((await api_keys.create(ctx, "Bench"))["key"]), str(client["_id"] if client else "")]
    return Companies(*keys)


# --- the noisy company, in a process of its own ----------------------------------------------------------------------

Noise = Callable[[aiohttp.ClientSession, str, int], Awaitable[None]]


async def _search(http: aiohttp.ClientSession, _client: str, number: int) -> None:
    term = ("an", "ar", "el", "in", "ma", "no", "or", "sa")[number % 8]
    path = f"/coach/customers?archived=false&pageSize=50&pageNum={1 + number % 4}&contains={term}"
    async with http.get(path) as response:
        await response.read()


async def _upload(http: aiohttp.ClientSession, client: str, _number: int) -> None:
    body = aiohttp.FormData(default_to_multipart=True)
    body.add_field("file", io.BytesIO(_PDF), filename="plan.pdf")
    async with http.post(f"/coach/customers/{client}/nutrition-plans", data=body) as response:
        await response.read()


async def _export(http: aiohttp.ClientSession, _client: str, _number: int) -> None:
    async with http.get("/coach/export") as response:
        with suppress(asyncio.IncompleteReadError):
            await response.content.readexactly(_HALF_OF_EXPORT)
        response.close()  # half-way


async def _array(http: aiohttp.ClientSession, _client: str, number: int) -> None:
    async with http.post(
        "/coach/customers", data=_ARRAY_BODIES[number % len(_ARRAY_BODIES)], headers=_JSON
    ) as response:
        await response.read()


def _scanned_pages() -> bytes:
    """A PDF of about `_UPLOAD_BYTES`."""
    pages = [Image.effect_noise((4000, 3000), 48).convert("RGB")] * 3
    out = io.BytesIO()
    pages[0].save(out, "PDF", quality=70, save_all=True, append_images=pages[1:])
    return out.getvalue()


_JSON = {"Content-Type": "application/json"}
_PDF = _scanned_pages()
_ARRAY_BODIES = (
    b'{"name": "x", "groups": [' + b",".join([b"1"] * 1_000_000) + b"]}",  # above MAX_BODY_BYTES
    b'{"name": "x", "groups": [' + b",".join([b"1"] * 520_000) + b"]}",
    b'{"name": "x", "other": [' + b",".join([b'{"a":1}'] * 130_000) + b"]}",
    b'{"name": "x", "other": [' + b",".join([b"[]"] * 349_000) + b"]}",
)
KINDS: dict[str, tuple[str, Noise, int]] = {
    "searches": (f"searches, {_SEARCHES} connections", _search, _SEARCHES),
    "uploads": (f"uploads of {_UPLOAD_BYTES // 1_000_000} MB, {_UPLOADS} at once", _upload, _UPLOADS),
    "exports": (f"exports aborted half-way, {_EXPORTS} at once", _export, _EXPORTS),
    "arrays": (f"bodies with up to a million values, {_ARRAYS} at once", _array, _ARRAYS),
}


async def _make_noise(base_url: str, key: str, client: str) -> None:
    """Send the kind of requests that each line of the input names, until the next; an empty one: none.

    Writes a dot for each response, and a line when all have ended.
    """
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    numbers = itertools.count()
    timeout = aiohttp.ClientTimeout(600)

    async def repeat(send: Noise) -> None:
        while True:
            with suppress(aiohttp.ClientError):
                await send(http, client, next(numbers))
                sys.stdout.write(".")

    while line := (await lines.readline()).decode():
        if (kind := line.strip()) not in KINDS:
            continue
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            base_url, connector=connector, timeout=timeout, headers={"X-API-Key": key}
        ) as http:
            _, send, at_once = KINDS[kind]
            tasks = [asyncio.create_task(repeat(send)) for _ in range(at_once)]
            await lines.readline()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        sys.stdout.write("\n")


@dataclass(frozen=True)
class NoiseProcess:
    """The process that sends the requests of the noisy company."""

    pipe_in: asyncio.StreamWriter
    pipe_out: asyncio.StreamReader

    @classmethod
    async def start(cls, stack: AsyncExitStack, base_url: str, companies: Companies) -> NoiseProcess:
        """Start it, to be ended with the stack."""
        arguments = [sys.executable, "-m", "benchmarks.fairness", "--noise", "--base-url", base_url]
        arguments += ["--key", companies.noisy_key, "--client", companies.noisy_client]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe, limit=2**20)
        stack.callback(process.kill)
        assert process.stdin is not None
        assert process.stdout is not None
        os.setpriority(os.PRIO_PROCESS, process.pid, _NOISY_PRIORITY)
        if others := os.sched_getaffinity(0) - {_SERVICE_CORE}:
            os.sched_setaffinity(process.pid, others)
        return cls(process.stdin, process.stdout)

    @asynccontextmanager
    async def sending(self, kind: str, figures: Figures) -> AsyncIterator[None]:
        """Send requests of a kind during the block."""
        self.pipe_in.write(kind.encode() + b"\n")
        async with asyncio.timeout(60):
            await self.pipe_out.readexactly(1)
        await asyncio.sleep(_RAMP_SECONDS)
        yield
        self.pipe_in.write(b"\n")
        async with asyncio.timeout(60):
            figures.noise += len(await self.pipe_out.readline())


# --- the quiet company -----------------------------------------------------------------------------------------------


async def _measure_slot(base_url: str, companies: Companies, seconds: float, figures: Figures) -> list[float]:
    """Send requests of three kinds, the next when the last is answered; returns the milliseconds of each."""
    took: list[float] = []
    client = f"/coach/customers/{companies.quiet_client}"
    requests = (("GET", "/coach/customers?archived=false&pageSize=50&pageNum=1"), ("GET", client), ("PATCH", client))

    async def repeat() -> None:
        ends = time.perf_counter() + seconds
        for number in itertools.count():
            method, path = requests[number % len(requests)]
            body = {"phone": str(number)} if method == "PATCH" else None
            began = time.perf_counter()
            if began > ends:
                return
            async with http.request(method, path, json=body) as response:
                await response.read()
            took.append((time.perf_counter() - began) * 1000)
            figures.failures += response.status != 200

    async with aiohttp.ClientSession(base_url, headers={"X-API-Key": companies.quiet_key}) as http:
        await asyncio.gather(*(repeat() for _ in range(_QUIET_CONNECTIONS)))
    return took


def _p99(took: list[float]) -> float:
    return quantiles(took, n=100)[98]


async def _measure(
    base_url: str, companies: Companies, noise: NoiseProcess, kinds: list[str], rounds: int, seconds: float
) -> dict[str, Figures]:
    figures = {kind: Figures() for kind in kinds}
    await _measure_slot(base_url, companies, seconds, Figures())  # the first requests of a process take longer
    for _ in range(rounds):
        for kind in kinds:
            each = figures[kind]
            each.alone.append(await _measure_slot(base_url, companies, seconds, each))
            async with noise.sending(kind, each):
                each.next_to.append(await _measure_slot(base_url, companies, seconds, each))
            await asyncio.sleep(_RAMP_SECONDS)
    return figures


def _show(figures: dict[str, Figures]) -> bool:
    table = Table(title="Milliseconds of a quiet company's requests (99th percentile, medians of the rounds)")
    for heading in ("Next to", "p50 alone", "p50", "p99 alone", "p99", "Ratio (min / median / max)", "Responses"):
        table.add_column(heading, justify="left" if heading == "Next to" else "right")
    reached = True
    for kind, each in figures.items():
        ratios = sorted(_p99(next_to) / _p99(alone) for alone, next_to in zip(each.alone, each.next_to, strict=True))
        reached = reached and median(ratios) <= TARGET and not each.failures
        table.add_row(
            KINDS[kind][0],
            *(f"{median(map(median, slots)):.1f}" for slots in (each.alone, each.next_to)),
            *(f"{median(map(_p99, slots)):.1f}" for slots in (each.alone, each.next_to)),
            f"{ratios[0]:.1f} / {median(ratios):.1f} / {ratios[-1]:.1f}",
            f"{sum(map(len, each.next_to))} next to {each.noise}"
            + (f", {each.failures} failed" if each.failures else ""),
        )
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table)
    console.print(f"Target: {TARGET}. Load average {os.getloadavg()[0]:.1f}.")
    return reached


async def _run(kinds: list[str], rounds: int, seconds: float, extra: dict[str, str]) -> bool:
    async with AsyncExitStack() as stack:
        settings = stack.enter_context(temporary_settings())
        companies = await _make_companies(settings)
        server = stack.enter_context(running_service(settings, _SERVICE_CORE, **extra))
        noise = await NoiseProcess.start(stack, server.base_url, companies)
        return _show(await _measure(server.base_url, companies, noise, kinds, rounds, seconds))


@click.command()
@click.argument("kinds", nargs=-1, type=click.Choice(list(KINDS)))
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--seconds", type=float, default=3.0, show_default=True, help="Of each slot.")
@click.option("--setting", multiple=True, help="NAME=VALUE, for the service.")
@click.option("--noise", is_flag=True, hidden=True)
@click.option("--base-url", hidden=True)
@click.option("--key", hidden=True)
@click.option("--client", hidden=True)
def main(
    kinds: tuple[str, ...],
    rounds: int,
    seconds: float,
    setting: tuple[str, ...],
    noise: bool,
    base_url: str,
    key: str,
    client: str,
) -> None:
    """Measure the quiet company alone and next to each kind of noise, interleaved; exit code 1 above the target."""
    if noise:
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]  # it is a text stream
        uvloop.run(_make_noise(base_url, key, client))
        return
    extra = dict(each.split("=", 1) for each in setting)
    sys.exit(0 if uvloop.run(_run(list(kinds) or list(KINDS), rounds, seconds, extra)) else 1)


if __name__ == "__main__":
    main()

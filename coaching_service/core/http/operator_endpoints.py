"""Endpoints for operators and developers that need no credential: health, metrics and the API documentation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from ipaddress import ip_address
from math import nan
from typing import Any

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CONTENT_TYPE_LATEST

from coaching_service import __version__
from coaching_service.core.background import retrieve_failure
from coaching_service.core.changes.numbering import count_pending
from coaching_service.core.database import files, migrations
from coaching_service.core.database.connection import read_clock_difference, unreachable
from coaching_service.core.database.context import Services
from coaching_service.core.database.declared import Index
from coaching_service.core.database.documents import registry
from coaching_service.core.database.indexes import are_current, missing_indexes
from coaching_service.core.errors import Unavailable
from coaching_service.core.http import docs_page
from coaching_service.core.http.docs_page import Guide
from coaching_service.core.http.openapi import SentEvent, describe
from coaching_service.core.http.request_parsing import network_address
from coaching_service.core.http.responses import StaticContent, to_json
from coaching_service.core.http.routes import Route
from coaching_service.core.jobs import worker
from coaching_service.core.metrics import Reading, read_backlog, reading_in_time
from coaching_service.core.slots import RequestSlots

log = structlog.get_logger("coaching_service")
_MAX_CLOCK_SECONDS = 60.0
_MAX_PENDING_CHANGES = 10_000
_JSON_TYPE, _HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
_TEXT, _MARKDOWN = "text/plain; charset=utf-8", "text/markdown; charset=utf-8"
_JSON = {"Content-Type": _JSON_TYPE}
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_DOCS_FILES = {
    "docs.css": "text/css; charset=utf-8",
    "docs.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml; charset=utf-8",
}
_PAGE_HEADERS = {"Content-Security-Policy": _CONTENT_SECURITY_POLICY, "Referrer-Policy": "same-origin"}


class OperatorEndpoints:
    """/healthz, /readyz, /swagger-json, /docs with its guides, /llms.txt; /metrics unless it has a port of its own.

    `events` returns what is sent to webhooks.
    """

    def __init__(
        self,
        services: Services,
        routes: Sequence[Route],
        tags: Sequence[tuple[str, str]],
        slots: RequestSlots,
        events: Callable[[], Mapping[str, SentEvent]] = dict,
    ) -> None:
        self.services, self._routes, self._tags, self._slots = services, routes, tags, slots
        self._events = events
        self._has_indexes = False
        self._guides: dict[str, StaticContent] = {}
        self._readiness_check: asyncio.Task[None] | None = None
        self._comparison: asyncio.Task[None] | None = None

    def routes(self, metrics: Handler | None) -> list[web.RouteDef]:
        """Return the aiohttp routes, with the handler of /metrics or without it."""
        routes = [
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
            web.get("/swagger-json", self.swagger_json),
            web.get("/docs", self.docs),
            web.get("/llms.txt", self.llms_txt),
            *(web.get(f"/docs/{name}", partial(self.docs_file, name)) for name in _DOCS_FILES),
            *(
                web.get(f"{docs_page.PATH}/{guide.name}", partial(self.docs_guide, guide))
                for guide in docs_page.list_guides()
            ),
            *(
                web.get(f"{docs_page.PATH}/{guide.name}.md", partial(self.docs_text, guide))
                for guide in docs_page.list_guides()
            ),
        ]
        if metrics is not None:
            routes.append(web.get("/metrics", metrics))
        return routes

    @cached_property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return describe(self._routes, self._tags, self.services.base_url, self._events())

    @cached_property
    def _document_json(self) -> StaticContent:
        return StaticContent(to_json(self.document), _JSON_TYPE)

    @cached_property
    def _page(self) -> StaticContent:
        page = docs_page.render(self.document, docs_page.list_guides(), docs_page.PATH)
        return StaticContent(page, _HTML)

    async def healthz(self, _: web.Request) -> web.Response:
        """Responds 200 while the process is alive, with its version."""
        return web.Response(body=to_json({"status": "ok", "version": __version__}), headers=_JSON)

    async def readyz(self, _: web.Request) -> web.Response:
        """Responds 200 when a majority of the database responds, every index exists and no later version migrated it,
        the clocks of this process and the database differ by at most a minute, and requests get their turn.

        Raises Unavailable otherwise. Concurrent requests share one check. Indexes that were created as they are
        declared are compared once, while the service is ready already; those that were found are not again.
        """
        if self._readiness_check is None or self._readiness_check.done():
            self._readiness_check = asyncio.create_task(self._check_readiness())
            self._readiness_check.add_done_callback(retrieve_failure)
        await asyncio.shield(self._readiness_check)  # a disconnected caller must not cancel the shared check
        return web.Response(body=to_json({"status": "ready"}), headers=_JSON)

    async def _check_readiness(self) -> None:
        monitor, missing = self.services.monitor, []
        monitor.require()
        await self._slots.require_turns(monitor.seconds)
        try:
            async with asyncio.timeout(monitor.seconds):
                await monitor.check()
                await migrations.require_known(self.services.db)
                ahead = await read_clock_difference(self.services.db)
                if not self._has_indexes:
                    missing = await self._find_missing_indexes()
        except TimeoutError:
            raise unreachable() from None
        except migrations.NewerDatabase as error:
            raise Unavailable(str(error)) from None
        if abs(ahead) > _MAX_CLOCK_SECONDS:
            direction = "ahead of" if ahead > 0 else "behind"
            message = f"The clock of this process is {abs(ahead):.0f} s {direction} the database's"
            raise Unavailable(f"{message}; synchronize both with a time server")
        if missing:
            message = f"Indexes are missing: {', '.join(missing)}; run: coaching-service ensure-indexes"
            raise Unavailable(message)

    async def _find_missing_indexes(self) -> list[str]:
        """Return the missing indexes; none while they are compared for the first time, if they were created before."""
        if self._comparison is None and await are_current(self.services.db, self._declared):
            self._comparison = asyncio.create_task(self._compare_indexes())
            self._comparison.add_done_callback(retrieve_failure)
        if self._comparison is not None and not self._comparison.done():
            return []
        missing = await missing_indexes(self.services.db, self._declared)
        self._has_indexes = not missing
        return missing

    async def _compare_indexes(self) -> None:
        """Compare the indexes while requests are answered; readiness ends if one is missing."""
        if missing := await missing_indexes(self.services.db, self._declared):
            log.error("indexes are missing; run: coaching-service ensure-indexes", indexes=missing)
        else:
            self._has_indexes = True

    @cached_property
    def _declared(self) -> dict[str, tuple[Index, ...]]:
        return {name: each.indexes for name, each in registry.items()}

    async def swagger_json(self, request: web.Request) -> web.Response:
        """Return the OpenAPI document; 304 if the caller has it."""
        return self._document_json.respond(request)

    async def docs(self, request: web.Request) -> web.Response:
        """Return the OpenAPI document as a page."""
        return self._page.respond(request, _PAGE_HEADERS)

    async def docs_guide(self, guide: Guide, request: web.Request) -> web.Response:
        """Return a guide as a page."""
        if (content := self._guides.get(guide.name)) is None:
            content = self._guides[guide.name] = StaticContent(docs_page.render_guide(guide), _HTML)
        return content.respond(request, _PAGE_HEADERS)

    async def docs_text(self, guide: Guide, request: web.Request) -> web.Response:
        """Return a guide as Markdown."""
        return StaticContent(guide.text, _MARKDOWN).respond(request)

    async def llms_txt(self, request: web.Request) -> web.Response:
        """Return what there is to read, for language models."""
        return StaticContent(docs_page.list_for_models(self.services.base_url), _TEXT).respond(request)

    async def docs_file(self, name: str, request: web.Request) -> web.Response:
        """Return the stylesheet, the filter or the icon of these pages."""
        return StaticContent(docs_page.page_file(name), _DOCS_FILES[name]).respond(request)


# --- Metrics ---------------------------------------------------------------------------------------------------------


def metrics_handler(services: Services, readings: Sequence[Reading]) -> Handler:
    """Return the aiohttp handler that exposes the metrics of this process, or of all workers, and of the database."""

    async def handle(_: web.Request) -> web.Response:
        await asyncio.gather(*(read(services) for read in readings))
        metrics = services.metrics
        text = metrics.report() if metrics.add_others is None else await metrics.add_others(metrics.report())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return handle


def only_locally(handler: Handler, proxies: int) -> Handler:
    """Return a handler that other machines do not find. `proxies`: see `network_address`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            is_local = ip_address(network_address(request, proxies)).is_loopback
        except ValueError:
            is_local = False
        if not is_local:
            raise web.HTTPNotFound
        return await handler(request)

    return handle


def core_readings(job_kinds: Collection[str]) -> tuple[Reading, ...]:
    """Return what is read of the change log, of files, and of jobs of these kinds."""
    return _read_change_log, _read_files, partial(_read_jobs, kinds=job_kinds)


async def _read_change_log(services: Services) -> None:
    metrics, pending = services.metrics, count_pending(services, _MAX_PENDING_CHANGES)
    await read_backlog(pending, metrics.changes_pending, metrics.oldest_change_seconds, "pending changes")


async def _read_files(services: Services) -> None:
    stored = await reading_in_time(files.count_stored_bytes(services), nan, "stored files")
    services.metrics.stored_bytes.set(stored)


async def _read_jobs(services: Services, kinds: Collection[str]) -> None:
    due = await reading_in_time(worker.count_due(services, kinds), None, "jobs")
    for kind in kinds:
        count, seconds = (nan, nan) if due is None else due.get(kind, (0, 0.0))
        services.metrics.jobs_pending.labels(kind).set(count)
        services.metrics.oldest_job_seconds.labels(kind).set(seconds)
    oldest = await reading_in_time(worker.find_mail_age(services), nan, "oldest mail")
    services.metrics.oldest_mail_seconds.set(oldest)

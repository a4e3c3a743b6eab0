"""Endpoints for operators and developers that need no credential: health, metrics and the API documentation."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import resources
from ipaddress import ip_address
from itertools import chain, pairwise
from math import nan
from typing import Any

import jinja2
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from prometheus_client import CONTENT_TYPE_LATEST

from coaching_service import __version__
from coaching_service.core.background import retrieve_failure
from coaching_service.core.changes.numbering import count_pending
from coaching_service.core.database import files
from coaching_service.core.database.connection import read_clock_difference, unreachable
from coaching_service.core.database.context import Services
from coaching_service.core.errors import Unavailable
from coaching_service.core.http.request_parsing import network_address
from coaching_service.core.http.responses import accepts_gzip, is_not_modified, to_json
from coaching_service.core.http.routes import Route
from coaching_service.core.jobs import worker
from coaching_service.core.metrics import Reading, read_backlog, reading_in_time
from coaching_service.core.slots import RequestSlots
from coaching_service.documentation.openapi import describe
from coaching_service.http_server import GUIDES_PATH
from coaching_service.installation import migrations
from coaching_service.installation.indexes import are_current, declared_indexes, missing_indexes
from coaching_service.people.changes.events import SentEvent

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


class StaticContent:
    """The bytes of a page or document, with their type."""

    def __init__(self, body: str | bytes, content_type: str) -> None:
        self._body = body.encode() if isinstance(body, str) else body
        self._content_type = content_type

    @cached_property
    def _compressed(self) -> bytes:
        return gzip.compress(self._body, mtime=0)

    @cached_property
    def _etag(self) -> str:
        return f'"{hashlib.sha256(self._body).hexdigest()}"'

    def respond(self, request: web.Request, headers: Mapping[str, str] | None = None) -> web.Response:
        """Return the response with the content, 304 if the caller has it."""
        is_compressed = accepts_gzip(request)
        etag = f"W/{self._etag}" if is_compressed else self._etag  # the compressed bytes differ
        sent = {hdrs.ETAG: etag, hdrs.CACHE_CONTROL: "no-cache", hdrs.VARY: hdrs.ACCEPT_ENCODING, **(headers or {})}
        if is_not_modified(request, etag):
            return web.Response(status=304, headers=sent)
        if is_compressed:
            sent[hdrs.CONTENT_ENCODING] = "gzip"
        sent[hdrs.CONTENT_TYPE] = self._content_type
        return web.Response(body=self._compressed if is_compressed else self._body, headers=sent)


def _serving(make: Callable[[], str | bytes], content_type: str) -> Handler:
    """Return the handler of what is the same for everybody, and is made for the first who asks; 304 if they have it."""
    content = cache(lambda: StaticContent(make(), content_type))

    async def handle(request: web.Request) -> web.StreamResponse:
        return content().respond(request, _PAGE_HEADERS if content_type == _HTML else None)

    return handle


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
        self._readiness_check: asyncio.Task[None] | None = None
        self._comparison: asyncio.Task[None] | None = None

    def routes(self, metrics: Handler | None) -> list[web.RouteDef]:
        """Return the aiohttp routes, with the handler of /metrics or without it."""
        guides, base_url = list_guides(), self.services.base_url
        pages: list[tuple[str, Callable[[], str | bytes], str]] = [
            ("/swagger-json", lambda: to_json(self.document), _JSON_TYPE),
            ("/docs", lambda: render(self.document, guides, GUIDES_PATH), _HTML),
            ("/llms.txt", partial(list_for_models, base_url), _TEXT),
            *((f"/docs/{name}", partial(page_file, name), kind) for name, kind in _DOCS_FILES.items()),
            *((f"{GUIDES_PATH}/{each.name}", partial(render_guide, each), _HTML) for each in guides),
            *((f"{GUIDES_PATH}/{each.name}.md", partial(str, each.text), _MARKDOWN) for each in guides),
        ]
        handlers: list[tuple[str, Handler]] = [("/healthz", self.healthz), ("/readyz", self.readyz)]
        handlers += [(path, _serving(make, kind)) for path, make, kind in pages]
        handlers += [] if metrics is None else [("/metrics", metrics)]
        return [web.get(path, handler) for path, handler in handlers]

    @cached_property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return describe(self._routes, self._tags, self.services.base_url, self._events())

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
        if self._comparison is None and await are_current(self.services.db, declared_indexes()):
            self._comparison = asyncio.create_task(self._compare_indexes())
            self._comparison.add_done_callback(retrieve_failure)
        if self._comparison is not None and not self._comparison.done():
            return []
        missing = await missing_indexes(self.services.db, declared_indexes())
        self._has_indexes = not missing
        return missing

    async def _compare_indexes(self) -> None:
        """Compare the indexes while requests are answered; readiness ends if one is missing."""
        if missing := await missing_indexes(self.services.db, declared_indexes()):
            log.error("indexes are missing; run: coaching-service ensure-indexes", indexes=missing)
        else:
            self._has_indexes = True


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

    async def read_change_log(services: Services) -> None:
        metrics, pending = services.metrics, count_pending(services, _MAX_PENDING_CHANGES)
        await read_backlog(pending, metrics.changes_pending, metrics.oldest_change_seconds, "pending changes")

    async def read_files(services: Services) -> None:
        stored = await reading_in_time(files.count_stored_bytes(services), nan, "stored files")
        services.metrics.stored_bytes.set(stored)

    async def read_jobs(services: Services) -> None:
        due = await reading_in_time(worker.count_due(services, job_kinds), None, "jobs")
        for kind in job_kinds:
            count, seconds = (nan, nan) if due is None else due.get(kind, (0, 0.0))
            services.metrics.jobs_pending.labels(kind).set(count)
            services.metrics.oldest_job_seconds.labels(kind).set(seconds)
        oldest = await reading_in_time(worker.find_mail_age(services), nan, "oldest mail")
        services.metrics.oldest_mail_seconds.set(oldest)

    return read_change_log, read_files, read_jobs


# --- The guides of docs/ as HTML pages below /docs/guides -------------------------------------------------------------


_MARKS = re.compile(r"[^\w\- ]")
_CODE = re.compile(r"`([A-Z][A-Z0-9_]+)`")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]*\w[^()\s]*)\)")
_EXTERNAL = re.compile(r"https?://|mailto:|#")


@dataclass(frozen=True)
class Guide:
    """A guide: its name in the address, its title, and its text as Markdown."""

    name: str
    title: str
    text: str


@cache
def list_guides() -> tuple[Guide, ...]:
    """Return all guides, by title.

    Links to files that are not guides, and pictures, are their text: these files are only in the repository.
    """
    folder = resources.files(__package__).joinpath("guides")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir()}

    def redirect(link: re.Match[str]) -> str:
        shown, target = link.groups()
        file, hash_sign, anchor = target.rpartition("/")[2].partition("#")
        if _EXTERNAL.match(target):
            return link[0]
        return f"[{shown}]({GUIDES_PATH}/{file}{hash_sign}{anchor})" if file in texts else shown

    guides = [
        Guide(name.removesuffix(".md"), text.partition("\n")[0].removeprefix("# ").strip(), _LINK.sub(redirect, text))
        for name, text in texts.items()
    ]
    return tuple(sorted(guides, key=lambda guide: guide.title))


def render_guide(guide: Guide) -> str:
    """Return the page of a guide: headings have the anchors that links between guides use, codes in tables theirs."""
    from markdown_it import MarkdownIt  # not needed before a guide is read

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(guide.text)
    seen: Counter[str] = Counter()
    for opening, content in pairwise(tokens):
        if opening.type == "td_open" and (code := _CODE.fullmatch(content.content)) and not seen[code[1]]:
            opening.attrSet("id", code[1])
            seen[code[1]] += 1
        if opening.type == "heading_open":
            anchor = _MARKS.sub("", content.content.lower()).replace(" ", "-")
            opening.attrSet("id", f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
            seen[anchor] += 1
    for token in chain.from_iterable(each.children or () for each in tokens):
        target = str(token.attrGet("href") or "")
        if target.startswith(GUIDES_PATH):  # a page, instead of the Markdown
            token.attrSet("href", re.sub(r"\.md(?=#|$)", "", target))
    rendered = markdown.renderer.render(tokens, markdown.options, {})
    template = make_environment().get_template("guide.html")
    return template.render(guide=guide, guides=list_guides(), path=GUIDES_PATH, content=rendered)


def list_for_models(base_url: str) -> str:
    """Return what there is to read about the service, as https://llmstxt.org proposes it: Markdown with links."""
    lines = [
        "# Coaching service",
        "",
        "> Clients, training and progress of coaching businesses: a REST interface, webhooks, and tools for assistants "
        "(MCP). Every guide is Markdown; without `.md` it is a page.",
        "",
        "## Interface",
        "",
        f"- [API document]({base_url}/swagger-json): OpenAPI 3.1, with every operation and webhook",
        f"- [API documentation]({base_url}/docs): the same as a page",
        f"- [Tools for assistants]({base_url}/mcp): the MCP endpoint",
        "",
        "## Guides",
        "",
        *(f"- [{guide.title}]({base_url}{GUIDES_PATH}/{guide.name}.md)" for guide in list_guides()),
    ]
    return "\n".join(lines) + "\n"


_PLACEHOLDERS = {"integer": "1", "boolean": "false"}
_DATE = "2026-03-02"
# References are expanded to this depth; deeper ones are links to the schema.
MAX_DEPTH = 2


def make_environment() -> jinja2.Environment:
    """Return the environment of the templates of these pages."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "pages"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


def render(document: Mapping[str, Any], guides: Sequence[Guide] = (), guides_path: str = "") -> str:
    """Return the page of an OpenAPI document, with links to guides."""
    environment = make_environment()
    environment.filters |= {
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
        "curl": lambda operation, method, path: curl_command(document, method, path, operation),
        "resolve": lambda node: resolve(document, node),
        "type_name": type_name,
        "reference": lambda node: node.get("$ref", "").rpartition("/")[2],
        "options": options,
    }
    groups: dict[str, list[tuple[str, str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            groups[operation["tags"][0]].append((method.upper(), path, operation))
    used = {name: each for name, each in groups.items() if each}  # one is of webhooks only
    template = environment.get_template("docs.html")
    return template.render(spec=document, groups=used, max_depth=MAX_DEPTH, guides=guides, guides_path=guides_path)


def page_file(name: str) -> str:
    """Return a file of the page: `docs.css`, `docs.js` or `icon.svg`."""
    return resources.files(__package__).joinpath("pages", name).read_text("utf-8")


def resolve(document: Mapping[str, Any], node: Any) -> Any:
    """Return what a reference names; anything else is returned as it is."""
    if isinstance(node, dict) and "$ref" in node:
        target: Any = document
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return target
    return node


def options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives of a schema, without null."""
    alternatives: Sequence[Mapping[str, Any]] = schema.get("oneOf") or schema.get("anyOf") or []
    return [option for option in alternatives if option.get("type") != "null"]


def type_name(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in words, such as `array of string, or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if alternatives := schema.get("oneOf") or schema.get("anyOf"):
        return " or ".join(type_name(option) for option in alternatives)
    if "const" in schema or "enum" in schema:
        return " or ".join(json.dumps(word) for word in schema.get("enum", [schema.get("const")]))
    types = [schema["type"]] if isinstance(schema.get("type"), str) else list(schema.get("type", ["any"]))
    words = {"string": f"string ({schema['format']})" if "format" in schema else "string"}
    if "array" in types:
        words["array"] = f"array of {type_name(schema.get('items', {}))}"
    return " or ".join(words.get(name, name) for name in types)


def curl_command(document: Mapping[str, Any], method: str, path: str, operation: Mapping[str, Any]) -> str:
    """Return a curl command that calls an operation with its example."""
    query = [
        f"{parameter['name']}={_PLACEHOLDERS.get(parameter['schema'].get('type'), _DATE)}"
        for parameter in (resolve(document, each) for each in operation["parameters"])
        if parameter["in"] == "query" and parameter.get("required")
    ]
    url = document["servers"][0]["url"] + path + (f"?{'&'.join(query)}" if query else "")
    parts = [f"curl -X {method} {shlex.quote(url)}"]
    if schemes := [name for requirement in operation["security"] for name in requirement]:
        header = "X-API-Key: $API_KEY" if "apiKey" in schemes else "Authorization: Bearer $ACCESS_TOKEN"
        parts.append(f'-H "{header}"')
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        if media_type == "multipart/form-data":
            for name, field in content["schema"]["properties"].items():
                text = shlex.quote(str(field.get("example") or field.get("enum", ["text"])[0]))
                parts.append(f"-F {name}={'@file' if field.get('format') == 'binary' else text}")
        else:
            example = json.dumps(content.get("example", {}), ensure_ascii=False)
            parts += [f"-H 'Content-Type: {media_type}'", f"-d {shlex.quote(example)}"]
    return " \\\n  ".join(parts)

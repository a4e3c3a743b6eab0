"""From a declared page to an aiohttp handler: who visits, may they, what was typed, then the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import structlog
from aiohttp import web
from marshmallow import ValidationError

from coaching_service.kernel.auth.access import check
from coaching_service.kernel.errors import (
    BadRequest,
    Conflict,
    LegacyFailure,
    MethodNotAllowed,
    NotFound,
    ServiceError,
    SignInRefused,
    TooManyRequests,
    Unauthorized,
)
from coaching_service.kernel.rest.inputs import network_address
from coaching_service.kernel.rest.serve import Server
from coaching_service.kernel.rest.traffic import REQUEST_ID, WHO
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.web import drawing, statics, views
from coaching_service.web.failures import known
from coaching_service.web.forms import Sent, Typed, field_names, load, read_form, wrong
from coaching_service.web.pages import Go, Page, Show, Working
from coaching_service.web.visits import CSRF_FIELD, Visit, local
from coaching_service.web.working import work

log = structlog.get_logger("coaching_service.web")
_AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# What a form is told beside its fields; anything else is a page of its own. NotFound: what was chosen in it is gone.
_FORM_ERRORS = (BadRequest, Conflict, LegacyFailure, NotFound, SignInRefused, TooManyRequests)


def mount(app: web.Application, server: Server) -> None:
    """Serve every page on `app`; what is under /app and is none of them is told so by a page."""
    drawing.prepare(app)
    app.add_routes(statics.routes())
    declared = views.everything()
    house = _House(server, {page.handler: page for page in declared if page.method == "GET"})
    for page in declared:
        add = app.router.add_get if page.method == "GET" else app.router.add_post
        add(page.pattern, house.handler(page))
    for pattern in {page.pattern for page in declared}:
        methods = {page.method for page in declared if page.pattern == pattern}
        app.router.add_route("*", pattern, house.refusal(methods))
    app.router.add_route("*", "/app/{rest:.*}", house.refusal(set()))
    app.router.add_get("/", house.root)


class _House:
    """What every page is served with."""

    def __init__(self, server: Server, shown: dict[Any, Page]) -> None:
        self.server, self.shown = server, shown

    def handler(self, page: Page) -> _AiohttpHandler:
        """The aiohttp handler of one declared page."""

        async def handle(request: web.Request) -> web.StreamResponse:
            visit = Visit.unknown(self.server.services)
            try:
                visit = await Visit.of(self.server.services, request)
                return await self._serve(page, request, visit)
            except Unauthorized:
                return sign_in_first(request, visit)
            except Exception as error:  # noqa: BLE001 - every failure becomes a page here, and only here
                return drawing.draw_error(request, visit, known(request, error))

        return handle

    def refusal(self, methods: set[Any]) -> _AiohttpHandler:
        """Says that there is no such page, or that it is not used by this method."""
        allowed = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))

        async def refuse(request: web.Request) -> web.StreamResponse:
            visit = await Visit.of(self.server.services, request)
            what = f"Cannot {request.method} {request.path}"
            error = MethodNotAllowed(what, {"Allow": allowed}) if methods else NotFound(what)
            return drawing.draw_error(request, visit, error)

        return refuse

    async def root(self, request: web.Request) -> web.StreamResponse:
        """A browser at the bare address is led to the application; anybody else finds nothing there."""
        if "text/html" not in request.headers.get("Accept", ""):
            raise web.HTTPNotFound
        return _led("/app")

    async def _serve(self, page: Page, request: web.Request, visit: Visit) -> web.StreamResponse:
        if page.access.who != "public" and visit.principal is None:
            raise Unauthorized()
        sent = await self._own_form(request, visit) if page.method == "POST" else None
        if page.access.who != "public" and visit.principal is not None:
            request[WHO] = visit.principal
        check(page.access, visit.principal, writes=page.method == "POST")
        ctx = Context(
            self.server.services,
            visit.principal,
            request_id=request[REQUEST_ID],
            address=network_address(request, self.server.proxies),
        )
        if sent is None:
            return await self._page(page, request, visit, ctx)
        return await self._form(page, request, visit, ctx, sent)

    async def _own_form(self, request: web.Request, visit: Visit) -> Sent:
        sent = await read_form(request)
        visit.require_own_form(request, sent.popall(CSRF_FIELD, [""])[0])
        return sent

    async def _page(
        self,
        page: Page,
        request: web.Request,
        visit: Visit,
        ctx: Context,
        typed: Typed | None = None,
        more: dict[str, Any] | None = None,
        status: int = 200,
    ) -> web.StreamResponse:
        check(page.access, visit.principal, writes=False)
        async with self.server.lane(page.lane):
            answer = await page.handler(ctx, **self._arguments(page, request))
        if isinstance(answer, web.StreamResponse):
            return answer
        if isinstance(answer, Go):
            return _go(visit, answer)
        if typed is not None and "version" in answer:
            typed.against(answer["version"])
        return drawing.draw(
            request,
            visit,
            page.template,
            answer | (more or {}),
            typed=typed,
            status=status,
            leads_away=page.leads_away,
        )

    async def _form(
        self, page: Page, request: web.Request, visit: Visit, ctx: Context, sent: Sent
    ) -> web.StreamResponse:
        try:
            arguments = self._arguments(page, request)
            if page.form is not None:
                arguments["form"] = load(page.form, sent)
            async with self.server.lane(page.lane):
                answer = await page.handler(ctx, **arguments)
        except (ValidationError, *_FORM_ERRORS) as failure:
            if page.on is None or (isinstance(failure, NotFound) and page.form is None):
                raise
            error = failure if isinstance(failure, ValidationError) else known(request, failure)
            problem = error if isinstance(error, ValidationError) else _told(error)
            typed = wrong(page.name, sent, problem, field_names(page.form))
            status = error.status if isinstance(error, ServiceError) else BadRequest.status
            shown = await self._page(self.shown[page.on], request, visit, ctx, typed, status=status)
            if isinstance(error, ServiceError):
                shown.headers.update(error.headers)
            return shown
        if isinstance(answer, web.StreamResponse):
            return answer
        if isinstance(answer, Go):
            return _go(visit, answer)
        if isinstance(answer, Working):
            async with self.server.lane(page.lane):
                return await work(request, visit, answer)
        if isinstance(answer, Show) and page.on is not None:
            return await self._page(self.shown[page.on], request, visit, ctx, more=answer.variables)
        raise TypeError(f"{page.path}: a form answers Go, Show or Working")

    @staticmethod
    def _arguments(page: Page, request: web.Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            name: ObjectId(request.match_info[wire])
            for wire, name in page.path_parameters
            if wire in request.match_info
        }
        if page.query is not None:
            try:
                arguments["query"] = load(page.query, request.query)
            except ValidationError:
                arguments["query"] = load(page.query, {})
        if page.takes_request:
            arguments["request"] = request
        return arguments


def sign_in_first(request: web.Request, visit: Visit) -> web.Response:
    """Leads to the sign-in page, and from there back to the page asked for, or to the one a form was sent from."""
    asked = request.method in ("GET", "HEAD")
    came_from = urlsplit(request.headers.get("Referer", ""))
    back = came_from._replace(scheme="", netloc="").geturl() if came_from.netloc == request.host else ""
    target = local((request.path_qs if asked else back).replace("\\", "%5C"), "")
    response = _led("/app/sign-in" + (f"?{urlencode({'next': target})}" if target not in ("", "/app") else ""))
    visit.dress(response)
    if not asked:
        visit.leave_notice(response, "Your session has ended, so nothing was changed. Sign in and send it once more.")
    return response


def _told(error: ServiceError) -> str | list[str]:
    """What a form says of an error; of too many attempts also when to come back, of what is gone what to do."""
    if isinstance(error, NotFound):
        return f"{error.message}: it has been deleted meanwhile. Nothing was changed; what you typed is still here."
    if isinstance(error, TooManyRequests):
        minutes = -(-int(error.headers.get("Retry-After", 60)) // 60)
        return f"Too many attempts. Try again in {minutes} {'minute' if minutes == 1 else 'minutes'}."
    return error.message


def _go(visit: Visit, go: Go) -> web.Response:
    response = _led(go.to)
    visit.dress(response, session=go.session, ends=go.ends)
    if go.notice:
        visit.leave_notice(response, go.notice)
    return response


def _led(to: str) -> web.Response:
    # Not web.HTTPSeeOther, which would spell the address anew.
    return web.Response(
        status=303, headers={"Location": to, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
    )

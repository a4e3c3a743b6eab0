"""From a declared page to an aiohttp handler: who visits, may they, what was typed, then the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any

import structlog
from aiohttp import web
from marshmallow import ValidationError

from coaching_service.core.auth.access import check_access
from coaching_service.core.database.context import Context
from coaching_service.core.errors import (
    BadRequest,
    ClientDisconnected,
    Conflict,
    LegacyFailure,
    MethodNotAllowed,
    NotFound,
    ServiceError,
    SignInRejected,
    TooManyRequests,
    Unauthorized,
)
from coaching_service.core.http.handlers import HandlerDependencies
from coaching_service.core.http.middleware import PRINCIPAL, REQUEST_ID
from coaching_service.core.http.request_parsing import is_disconnected, network_address
from coaching_service.core.http.uploads import Upload
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.web import form_idempotency, reauthentication, rendering, static_files, uploads, views
from coaching_service.web.browser_sessions import CSRF_FIELD, BrowserSession, StaleForm
from coaching_service.web.error_pages import to_service_error
from coaching_service.web.forms import FormData, FormState, field_names, load, wrong
from coaching_service.web.pages import Page, Redirect, Render, StreamedTask
from coaching_service.web.redirects import redirect, redirect_to_sign_in, see_other
from coaching_service.web.streamed_tasks import work

_ANSWERED = "You have answered this already. If the program is still waiting, answer once more."
_BEGUN = "That was sent already, and is not begun again. To do it once more, choose the clients anew."
log = structlog.get_logger("coaching_service.web")
_AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# What a form is told beside its fields; anything else is a page of its own. NotFound: what was chosen in it is gone.
_FORM_ERRORS = (BadRequest, Conflict, LegacyFailure, NotFound, SignInRejected, TooManyRequests)


def mount(app: web.Application, dependencies: HandlerDependencies) -> None:
    """Serve every page on `app`; what is under /app and is none of them is told so by a page."""
    rendering.configure_templates(app, dependencies.limits)
    app.add_routes(static_files.routes())
    declared = views.list_pages()
    application = WebApplication(dependencies, {page.handler: page for page in declared if page.method == "GET"})
    for page in declared:
        add = app.router.add_get if page.method == "GET" else app.router.add_post
        add(page.pattern, application.handler(page))
    for pattern in {page.pattern for page in declared}:
        app.router.add_route("*", pattern, application.refusal([page for page in declared if page.pattern == pattern]))
    app.router.add_route("*", "/app/{rest:.*}", application.refusal([]))
    app.router.add_get("/", application.root)


class WebApplication:
    """What every page is served with."""

    def __init__(self, dependencies: HandlerDependencies, shown: dict[Any, Page]) -> None:
        self.dependencies, self.shown = dependencies, shown

    def handler(self, page: Page) -> _AiohttpHandler:
        """The aiohttp handler of one declared page."""

        async def handle(request: web.Request) -> web.StreamResponse:
            browser_session = BrowserSession.anonymous(self.dependencies.services)
            try:
                browser_session = await BrowserSession.from_request(self.dependencies.services, request)
                return await self._serve(page, request, browser_session)
            except Unauthorized:
                return redirect_to_sign_in(request, browser_session)
            except ClientDisconnected:
                raise
            except Exception as error:  # noqa: BLE001 - every failure becomes a page here, and only here
                return rendering.render_error(request, browser_session, to_service_error(request, error))

        return handle

    def refusal(self, here: list[Page]) -> _AiohttpHandler:
        """Says that there is no such page, or that it is not used by this method; a form's address, reloaded or kept,
        leads to the page on which it stands."""
        methods: set[str] = {page.method for page in here}
        allowed = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))

        async def refuse(request: web.Request) -> web.StreamResponse:
            reads = request.method in ("GET", "HEAD")
            if reads and here:
                query = request.rel_url.raw_query_string
                return see_other(self._standing(here[0], request) + (f"?{query}" if query else ""))
            if reads and request.path.endswith("/"):
                return see_other(request.path.rstrip("/"))
            browser_session = await BrowserSession.from_request(self.dependencies.services, request)
            what = f"Cannot {request.method} {request.path}"
            error = MethodNotAllowed(what, {"Allow": allowed}) if methods else NotFound(what)
            return rendering.render_error(request, browser_session, error)

        return refuse

    def _standing(self, page: Page, request: web.Request) -> str:
        """The address of the page on which a form stands."""
        return self.shown[page.on].path.format_map(request.match_info) if page.on else "/app"

    async def root(self, request: web.Request) -> web.StreamResponse:
        """A browser at the bare address is led to the application; anybody else finds nothing there."""
        if "text/html" not in request.headers.get("Accept", ""):
            raise web.HTTPNotFound
        return see_other("/app")

    async def _serve(self, page: Page, request: web.Request, browser_session: BrowserSession) -> web.StreamResponse:
        ctx = self._context(request, browser_session)
        if page.access.audience != "public":
            if browser_session.principal is None:
                return await self._ended(page, request, browser_session, ctx)
            request[PRINCIPAL] = browser_session.principal
        if page.method == "GET":
            return await self._page(page, request, browser_session, ctx)
        check_access(page.access, browser_session.principal, writes=True)
        sent, upload = await uploads.received(page, request, self.dependencies.limits)
        with closing(upload):
            try:
                browser_session.check_form_token(request, sent.popall(CSRF_FIELD, [""])[0])
            except StaleForm:
                return await self._out_of_date(page, request, browser_session, ctx, sent)
            return await self._form(page, request, browser_session, ctx, sent, upload)

    def _context(self, request: web.Request, browser_session: BrowserSession) -> Context:
        return Context(
            self.dependencies.services,
            browser_session.principal,
            request_id=request[REQUEST_ID],
            network_address=network_address(request, self.dependencies.proxies),
            is_disconnected=partial(is_disconnected, request),
        )

    async def _ended(
        self, page: Page, request: web.Request, browser_session: BrowserSession, ctx: Context
    ) -> web.StreamResponse:
        """A form after its session: who sent it signs in on the spot, and finds the form as they left it, unsent."""
        if page.on is None or browser_session.is_same_site(request) is not True:
            raise Unauthorized()
        sent, _ = await uploads.received(page, request, None)
        entry, typed = reauthentication.entry_of(sent), reauthentication.typed_of(sent)
        if not entry or not browser_session.accepts(typed.popall(CSRF_FIELD, [""])[0]):
            return self._sign_in_again(request, browser_session, typed, FormState(reauthentication.FORM))
        try:
            session = await reauthentication.sign_in(ctx, entry)
        except (ValidationError, *_FORM_ERRORS) as error:
            return self._sign_in_again(
                request,
                browser_session,
                typed,
                *_not_accepted(reauthentication.FORM, entry, error, field_names(reauthentication.ENTRY)),
            )
        browser_session = await browser_session.signed_in(session)
        filled = FormState(page.name, typed, form_errors=[reauthentication.BACK])
        try:
            shown = await self._page(
                self.shown[page.on], request, browser_session, self._context(request, browser_session), filled
            )
        except ServiceError as error:
            shown = rendering.render_error(request, browser_session, error)
        browser_session.set_cookies(shown, session=session)
        return shown

    @staticmethod
    def _sign_in_again(
        request: web.Request,
        browser_session: BrowserSession,
        kept: FormData,
        typed: FormState,
        status: int = Unauthorized.status,
    ) -> web.Response:
        kept.popall(CSRF_FIELD, None)
        return rendering.render_page(
            request,
            browser_session,
            reauthentication.TEMPLATE,
            {"kept": list(kept.items())},
            typed=typed,
            status=status,
        )

    async def _out_of_date(
        self, page: Page, request: web.Request, browser_session: BrowserSession, ctx: Context, sent: FormData
    ) -> web.StreamResponse:
        """A form of another browser_session of this browser's: shown again as it was typed."""
        if browser_session.is_same_site(request) is not True:
            raise StaleForm()
        if page.on is None:
            return see_other("/app")
        typed = FormState(page.name, reauthentication.typed_of(sent), form_errors=[reauthentication.STALE])
        return await self._page(self.shown[page.on], request, browser_session, ctx, typed, status=StaleForm.status)

    async def _page(
        self,
        page: Page,
        request: web.Request,
        browser_session: BrowserSession,
        ctx: Context,
        typed: FormState | None = None,
        more: dict[str, Any] | None = None,
        status: int = 200,
    ) -> web.StreamResponse:
        check_access(page.access, browser_session.principal, writes=False)
        async with self.dependencies.limiter(page.request_class):
            answer = await page.handler(ctx, **self._arguments(page, request))
        if isinstance(answer, web.StreamResponse):
            return answer
        if isinstance(answer, Redirect):
            return redirect(browser_session, answer)
        if typed is not None and "version" in answer:
            typed.against(answer["version"])
        return rendering.render_page(
            request,
            browser_session,
            page.template,
            answer | (more or {}),
            typed=typed,
            status=status,
            external_redirect=page.external_redirect,
        )

    async def _form(
        self,
        page: Page,
        request: web.Request,
        browser_session: BrowserSession,
        ctx: Context,
        sent: FormData,
        upload: Upload,
    ) -> web.StreamResponse:
        once_only = page.external_redirect or (page.access.audience != "public" and not page.idempotent)
        claim = form_idempotency.claim_of(ctx, request, sent, upload.sha256) if once_only else None
        try:
            arguments = self._arguments(page, request)
            if page.schema is not None:
                arguments["form"] = load(page.schema, sent)
            with_file = uploads.with_file(page, ctx, upload, arguments, self.dependencies.limits)
            async with with_file as whole, self.dependencies.limiter(page.request_class):
                answer = await self._done(whole, request, ctx, arguments, claim)
        except (ValidationError, *_FORM_ERRORS) as failure:
            if page.on is None or (isinstance(failure, NotFound) and page.form is None):
                raise
            error = failure if isinstance(failure, ValidationError) else to_service_error(request, failure)
            typed, status = _not_accepted(page.name, sent, error, _fields_of(page))
            shown = await self._page(self.shown[page.on], request, browser_session, ctx, typed, status=status)
            if isinstance(error, ServiceError):
                shown.headers.update(error.headers)
            return shown
        if isinstance(answer, StreamedTask):
            if claim is not None and not await form_idempotency.is_first(ctx, claim):
                return redirect(browser_session, Redirect(answer.return_url, _BEGUN))
            async with self.dependencies.limiter(page.request_class):
                return await work(request, browser_session, answer)
        return await self._respond(page, request, browser_session, ctx, answer)

    async def _done(
        self, page: Page, request: web.Request, ctx: Context, arguments: dict[str, Any], claim: Claim | None
    ) -> Any:
        if claim is not None and page.external_redirect and not await form_idempotency.is_first(ctx, claim):
            raise Conflict(_ANSWERED)  # where the first time led is of use once only
        if claim is None or page.on is None or page.request_class != "database" or page.external_redirect:
            return await page.handler(ctx, **arguments)
        return await form_idempotency.done(ctx, claim, page, self._standing(page, request), arguments)

    async def _respond(
        self, page: Page, request: web.Request, browser_session: BrowserSession, ctx: Context, answer: Any
    ) -> web.StreamResponse:
        if isinstance(answer, web.StreamResponse):
            return answer
        if isinstance(answer, Redirect):
            return redirect(browser_session, answer)
        if isinstance(answer, Render) and page.on is not None:
            return await self._page(self.shown[page.on], request, browser_session, ctx, more=answer.variables)
        raise TypeError(f"{page.path}: a form answers Redirect, Render or StreamedTask")

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
        if page.with_request:
            arguments["request"] = request
        return arguments


def _fields_of(page: Page) -> set[str]:
    return field_names(page.schema) | ({page.upload.file_field} if page.upload else set())


def _not_accepted(
    name: str, sent: FormData, error: ValidationError | ServiceError, known: set[str]
) -> tuple[FormState, int]:
    """A form that was not accepted, and the status of the page that says so."""
    if isinstance(error, ServiceError):
        return wrong(name, sent, _told(error), known), error.status
    return wrong(name, sent, error, known), BadRequest.status


def _told(error: ServiceError) -> str | list[str]:
    """What a form says of an error; of too many attempts also when to come back, of what is gone what to do."""
    if isinstance(error, NotFound):
        return f"{error.message}: it has been deleted meanwhile. Nothing was changed; what you typed is still here."
    if isinstance(error, TooManyRequests):
        minutes = -(-int(error.headers.get("Retry-After", 60)) // 60)
        return f"Too many attempts. Try again in {minutes} {'minute' if minutes == 1 else 'minutes'}."
    return error.message

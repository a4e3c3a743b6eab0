"""The aiohttp handlers of the declared pages, and one request of a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from marshmallow import ValidationError
from multidict import MultiDict

from coaching_service.core import audit, errors
from coaching_service.core.auth import CUSTOMERS, Principal, check_access
from coaching_service.core.database.context import ClientsSeen, Context, gather_reads, schedule_key
from coaching_service.core.dates import zone_of
from coaching_service.core.http.handlers import PRINCIPAL, REQUEST_ID, HandlerDependencies, interrupting
from coaching_service.core.http.request_parsing import Upload, device_of, is_disconnected, network_address
from coaching_service.core.http.responses import Download
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.rate_limits import RateLimitExceeded
from coaching_service.core.text import camel_case
from coaching_service.integrations.proposals import service as proposals
from coaching_service.people.changes import service as changes
from coaching_service.people.changes.models import ChangeSummary
from coaching_service.people.sessions import service as sessions
from coaching_service.progress.conversation import service as conversation
from coaching_service.web import browser_sessions, forms, rendering, static_files, views
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import format_date
from coaching_service.web.views.history import describe_operation

# --- One request of a page or form, and what its page needs of it -----------------------------------------------------


_MOST = 3
_USES = {"apiKey": " (API key)", "assistant": " (assistant)", "application": " (application)"}
# The number in the navigation of a page, by its audience: its name in templates, and how it is read.
_COUNTERS = {
    "customer": ("unread_messages", conversation.count_own_unread),
    "coach": ("waiting_proposals", proposals.count_pending),
}


@dataclass(frozen=True)
class PageRequest:
    """One request of a page or form."""

    page: web_pages.Page
    request: web.Request
    browser_session: browser_sessions.BrowserSession
    ctx: Context

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the page's handler, without its form."""
        page = self.page
        arguments: dict[str, Any] = {**self.identifiers}
        if page.query is not None:
            try:
                arguments["query"] = forms.load_form(page.query, self.request.query)
            except ValidationError:
                arguments["query"] = forms.load_form(page.query, {})
        if page.with_request:
            arguments["request"] = self.request
        return arguments

    @property
    def identifiers(self) -> dict[str, ObjectId]:
        """The identifiers in the path by the names of the handler's arguments."""
        return {
            argument: ObjectId(self.request.match_info[name])
            for name, argument in self.page.path_parameters
            if name in self.request.match_info
        }

    async def read_variables(self) -> tuple[Any, dict[str, Any]]:
        """Return the result of the page's handler, and its `query` and the number in its navigation.

        That is how many messages a client has not read, or how many proposals of assistants wait for a coach. Both are
        read at the same time, so that the number does not delay the page.
        """
        arguments = self.arguments()
        query = {"query": arguments.get("query")}

        async def read_page() -> Any:
            try:
                return await self.page.handler(self.ctx, **arguments)
            except errors.InvalidFields:  # a cursor of another list: its beginning
                if not arguments.get("query", {}).get("after"):
                    raise
                others = [(name, value) for name, value in self.request.query.items() if name != "after"]
                return web_pages.Redirect(self.request.path + (f"?{urlencode(others)}" if others else ""))

        if self.page.access.audience not in _COUNTERS or not self.page.template:
            return await read_page(), query
        name, count = _COUNTERS[self.page.access.audience]
        counting = replace(self.ctx, clients_seen=ClientsSeen())  # it shows no client
        result, number = await gather_reads(self.ctx, read_page(), count(counting))
        return result, {name: number, **query}

    async def describe_newer_changes(self, version: int) -> str:
        """Describe the changes after `version`: `by Kim Coach on Mon 2 Mar 2026 at 09:30 (workout changed)`.

        The document is the last one in the path that was changed. For clients it does not name anyone of the company.
        """
        caller = self.ctx.caller

        def describe(change: ChangeSummary) -> str:
            actor = change["actor"]
            name, what = actor["name"] if actor else "another user", describe_operation(change["operation"])
            is_own = actor is not None and actor["_id"] == caller.id and change["via"] == "session"
            author = "in another tab of yours" if is_own else f"by {name}{_USES.get(change['via'], '')}"
            at = change["at"].replace(tzinfo=UTC).astimezone(zone_of(caller.timezone or caller.company.timezone))
            return f"{author} on {format_date(at.date())} at {at:%H:%M} ({what[:1].lower()}{what[1:]})"

        for document_id in reversed([*self.identifiers.values()] if caller.is_coach else []):
            customer_id = self.identifiers.get("customer_id")
            if newer := await changes.list_newer(self.ctx, customer_id, document_id, version, _MOST):
                return ", and ".join(map(describe, reversed(newer)))
        return "by another user or in another window"


# --- The aiohttp handlers of the declared pages -----------------------------------------------------------------------


_CONSENT_REPEATED = "This request has already been answered. If the application is still waiting, start again there."
_SIGN_IN_AGAIN = "Sign in again first. Nothing was changed."
_LONGEST_ADDRESS = 8_000  # the server refuses one of more than 8,190 bytes
_AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def mount(app: web.Application, dependencies: HandlerDependencies) -> None:
    """Add the routes of every page to `app`, and an error page for every other path under /app and /train."""
    rendering.configure_templates(app, dependencies.limits)
    app.add_routes(static_files.routes())
    pages = views.list_pages()
    application = WebApplication(dependencies, {page.handler: page for page in pages if page.method == "GET"})
    by_pattern: dict[str, list[web_pages.Page]] = {}
    for page in pages:
        pattern = page.pattern
        add = app.router.add_get if page.method == "GET" else app.router.add_post
        add(pattern, application.page_handler(page))
        if page.preview_of is not None:  # a form that is sent redirects to the same path with its values as the query
            app.router.add_get(pattern, application.page_handler(page))
        by_pattern.setdefault(pattern, []).append(page)
    for pattern, pages_of_path in by_pattern.items():
        app.router.add_route("*", pattern, application.fallback_handler(pages_of_path))
    for prefix in ("/app", "/train"):
        app.router.add_route("*", prefix + "/{rest:.*}", application.fallback_handler([]))
    app.router.add_get("/", application.handle_root)


class WebApplication:
    """Serves pages and forms. `pages` maps the handlers of pages to their declarations."""

    def __init__(
        self, dependencies: HandlerDependencies, pages: dict[web_pages.Handler | None, web_pages.Page]
    ) -> None:
        self.dependencies, self.pages = dependencies, pages

    def page_handler(self, page: web_pages.Page) -> _AiohttpHandler:
        """Return the aiohttp handler of one declared page or form."""

        async def handle(request: web.Request) -> web.StreamResponse:
            browser_session = browser_sessions.BrowserSession.anonymous(self.dependencies.services)
            try:
                async with interrupting(self.dependencies.services, request):
                    browser_session = await self._read_session(request)
                    await self._count(request, browser_session)
                    return await self._respond(self._page_request(page, request, browser_session))
            except errors.ClientDisconnected:
                raise
            except Exception as error:  # noqa: BLE001 - the one place where exceptions become error pages
                return self._failed(request, browser_session, error)

        return handle

    @staticmethod
    def _failed(
        request: web.Request, browser_session: browser_sessions.BrowserSession, error: Exception
    ) -> web.StreamResponse:
        """Return the response to a request that raised `error`."""
        if rendering.is_scripted(request):
            return rendering.error_response(request, browser_session, rendering.to_service_error(request, error))
        if isinstance(error, errors.Unauthorized):
            return browser_sessions.redirect_to_sign_in(request, browser_session)
        security_path = f"{browser_sessions.home_of(browser_session.principal)}/settings/security"
        must_sign_in = isinstance(error, errors.Forbidden) and error.code == "SIGN_IN_AGAIN"
        if must_sign_in or isinstance(error, errors.SecondFactorMissing):
            redirect = web_pages.Redirect(security_path, _SIGN_IN_AGAIN if must_sign_in else "")
            return browser_sessions.redirect_response(browser_session, redirect)
        return rendering.render_error(request, browser_session, rendering.to_service_error(request, error))

    async def _read_session(self, request: web.Request) -> browser_sessions.BrowserSession:
        return await browser_sessions.BrowserSession.from_request(self.dependencies.services, request)

    async def _count(self, request: web.Request, browser_session: browser_sessions.BrowserSession) -> None:
        """Count a request of a session, if requests are limited. Raises RateLimitExceeded."""
        limits, principal = self.dependencies.request_limits, browser_session.principal
        if limits is not None and principal is not None:
            await limits.count(request, principal)

    def fallback_handler(self, pages: list[web_pages.Page]) -> _AiohttpHandler:
        """Return the handler for methods that the `pages` of a path do not have, or for an unknown path.

        A form's path that is opened with GET redirects to the page of the form.
        """
        methods: set[str] = {page.method for page in pages}
        allowed = ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))

        async def handle(request: web.Request) -> web.StreamResponse:
            is_read, path = request.method in ("GET", "HEAD"), request.rel_url.raw_path
            if is_read and (pages or path.endswith("/")):
                query = request.rel_url.raw_query_string
                target = self._page_url(pages[0], request) if pages else path.rstrip("/")
                return browser_sessions.see_other(target + (f"?{query}" if query else ""))
            message = f"Cannot {request.method} {request.path}"
            error: errors.ServiceError = (
                errors.MethodNotAllowed(message, {"Allow": allowed}) if methods else errors.NotFound("page")
            )
            browser_session = browser_sessions.BrowserSession.anonymous(self.dependencies.services)
            try:
                async with interrupting(self.dependencies.services, request):
                    browser_session = await self._read_session(request)
                    await self._count(request, browser_session)
            except (RateLimitExceeded, errors.Unavailable) as refusal:
                error = refusal
            return rendering.render_error(request, browser_session, error)

        return handle

    async def handle_root(self, request: web.Request) -> web.StreamResponse:
        """Redirect browsers from `/` to the application; 404 for other clients."""
        if "text/html" not in request.headers.get("Accept", ""):
            raise web.HTTPNotFound
        return browser_sessions.see_other("/app")

    def _page_request(
        self, page: web_pages.Page, request: web.Request, browser_session: browser_sessions.BrowserSession
    ) -> PageRequest:
        ctx = Context(
            self.dependencies.services,
            browser_session.principal,
            request_id=request[REQUEST_ID],
            network_address=network_address(request, self.dependencies.proxies),
            device=device_of(request),
            is_disconnected=partial(is_disconnected, request),
            operation=camel_case(page.name),
        )

        async def load_caller() -> Principal:
            principal = (await self._read_session(request)).principal
            check_access(page.access, principal, writes=page.method != "GET")
            if principal is None:
                raise errors.Unauthorized
            return principal

        if page.access.audience != "public":
            ctx = replace(ctx, load_caller=load_caller)
        if page.request_class == "held":
            ctx = replace(ctx, turn=partial(self.dependencies.database_slots.holding, ctx.slot_holder))
        return PageRequest(page, request, browser_session, ctx)

    def _page_url(self, form: web_pages.Page, request: web.Request) -> str:
        """Return the path of the page that a form is on."""
        return self.pages[form.on].path.format_map(request.match_info) if form.on else "/app"

    async def _respond(self, page_request: PageRequest) -> web.StreamResponse:
        page, browser_session = page_request.page, page_request.browser_session
        if page.access.audience != "public":
            if browser_session.is_suspended:
                raise errors.CompanySuspended()
            if browser_session.principal is None:
                return await self._reauthenticate(page_request)
            page_request.request[PRINCIPAL] = browser_session.principal
        if page_request.request.method != "POST":
            principal, audience = browser_session.principal, page.access.audience
            if principal is not None and audience == ("customer" if principal.is_coach else "coach"):  # not for them
                return browser_sessions.see_other(browser_sessions.home_of(principal))
            if page.method == "GET":
                return await self._render(page_request)
            # What a form would do, with the values of the query: a page that can be left by Back, and reloaded.
            check_access(page.access, browser_session.principal, writes=False)
            return await self._process_form(page_request, MultiDict(page_request.request.query), Upload())
        if page.one_click and "token" in page_request.request.query:
            data = MultiDict(page_request.request.query)
            response = await self._process_form(page_request, data, Upload())
            return (
                response if response.status != HTTPStatus.SEE_OTHER else web.Response(text="No more of these mails.\n")
            )
        check_access(page.access, browser_session.principal, writes=True)
        if page.access.audience != "public" and not page.deletes:
            self.dependencies.services.disk_space.require()
        slots = page_request.ctx.services.work_slots.uploads  # for as many files at once as a company may send
        async with nullcontext() if page.upload is None else slots.holding(page_request.ctx.slot_holder):
            return await self._read_and_process_form(page_request)

    async def _read_and_process_form(self, page_request: PageRequest) -> web.StreamResponse:
        page, request, browser_session = page_request.page, page_request.request, page_request.browser_session
        data, upload = await forms.read_submission(page_request.ctx, page, request, self.dependencies.limits)
        with closing(upload):
            try:
                form_token = data.popall(forms.CSRF_FIELD, [""])[0]
                browser_session.check_form_token(request, form_token, has_mailed_token=page.has_mailed_token)
            except browser_sessions.StaleForm:
                if rendering.is_scripted(request) or browser_session.is_same_site(request) is not True:
                    raise
                if page.on is None:
                    return browser_sessions.see_other(browser_sessions.home_of(browser_session.principal))
                values = browser_sessions.original_values(data)
                form_state = forms.FormState(page.form_name, values, form_errors=[browser_sessions.STALE_FORM])
                return await self._render(page_request, form_state, status=browser_sessions.StaleForm.status)
            forms.apply_correction(data)
            if page.preview_of is not None:
                sent = browser_sessions.original_values(data)
                query = [(name, value) for name, value in request.rel_url.query.items() if name not in sent]
                address = f"{request.path}?{urlencode([*query, *sent.items()])}"
                if len(address) <= _LONGEST_ADDRESS:
                    return browser_sessions.see_other(address)
                data = MultiDict([*query, *sent.items()])  # the page has no address that it could be reloaded by
            return await self._process_form(page_request, data, upload)

    async def _reauthenticate(self, page_request: PageRequest) -> web.StreamResponse:
        """Respond to a request without a session: a form is shown again after signing in, filled in but not processed.

        Raises Unauthorized for a page, and for a form from elsewhere.
        """
        page, request, browser_session = page_request.page, page_request.request, page_request.browser_session
        is_own_form = request.method == "POST" and browser_session.is_same_site(request) is True
        if page.on is None or not is_own_form or rendering.is_scripted(request):
            raise errors.Unauthorized()
        data, _ = await forms.read_submission(page_request.ctx, page, request, None)
        # The values of the sign-in fields; empty when they have not been shown yet.
        credentials = MultiDict(
            (name, value) for name, value in data.items() if name.startswith(browser_sessions.PREFIX)
        )
        values = browser_sessions.original_values(data)
        form_token = values.popall(forms.CSRF_FIELD, [""])[0]
        if not credentials or not browser_session.accepts_form_token(form_token):
            return self._render_reauthentication(page_request, values, forms.FormState(browser_sessions.FORM_NAME))
        try:
            session = await browser_sessions.sign_in(
                page_request.ctx, credentials, page_request.ctx.device, browser_session.device_tokens
            )
        except errors.SecondFactorRequired as required:
            prefix, methods = browser_sessions.FORM_NAME, " ".join(required.details["methods"])
            asked = MultiDict({f"{prefix}.challenge": required.details["challenge"], f"{prefix}.methods": methods})
            return self._render_reauthentication(
                page_request, values, forms.FormState(browser_sessions.FORM_NAME, asked)
            )
        except (ValidationError, *rendering.FORM_ERRORS) as error:
            if isinstance(error, errors.SignInRejected) and error.code == "CHALLENGE_REJECTED":
                credentials = MultiDict()
            is_code = f"{browser_sessions.FORM_NAME}.challenge" in credentials
            schema = browser_sessions.CODE_SCHEMA if is_code else browser_sessions.SCHEMA
            form_state, status = rendering.reject(
                browser_sessions.FORM_NAME, page.path, credentials, error, forms.field_names(schema)
            )
            return self._render_reauthentication(page_request, values, form_state, status)
        principal = await sessions.find_web_principal(self.dependencies.services, session.token)
        browser_session = replace(browser_session, token=session.token, principal=principal)
        form_state = forms.FormState(page.form_name, values, form_errors=[browser_sessions.SIGNED_IN_AGAIN])
        try:
            shown = self._page_request(self.pages[page.on], request, browser_session)
            # The request has not the cookie of the new session.
            shown = replace(shown, ctx=replace(shown.ctx, load_caller=None))
            response = await self._render(shown, form_state)
        except errors.ServiceError as error:
            response = rendering.render_error(request, browser_session, error)
        browser_session.set_cookies(response, web_pages.Redirect("", session=session))
        return response

    @staticmethod
    def _render_reauthentication(
        page_request: PageRequest,
        values: forms.FormData,
        form_state: forms.FormState,
        status: int = errors.Unauthorized.status,
    ) -> web.Response:
        return rendering.render_page(
            page_request.request,
            page_request.browser_session,
            browser_sessions.TEMPLATE,
            {"values": list(values.items())},
            form_state=form_state,
            status=status,
        )

    async def _render(
        self,
        page_request: PageRequest,
        form_state: forms.FormState | None = None,
        additional_variables: dict[str, Any] | None = None,
        status: int = 200,
    ) -> web.StreamResponse:
        """Render a page, or the one that a form is on."""
        page = self.pages[page_request.page.on] if page_request.page.method == "POST" else page_request.page
        principal = page_request.browser_session.principal
        check_access(page.access, principal, writes=False)
        async with self.dependencies.limiter(page.request_class, page_request.ctx):
            page_request = replace(page_request, page=page, ctx=await page_request.ctx.after_waiting())
            result, variables = await page_request.read_variables()
        audit.record_access(page_request.ctx, audit.kind_of_path(page.path))
        if isinstance(result, web.StreamResponse):
            return result
        if isinstance(result, Download):
            headers = {"X-Request-Id": page_request.ctx.request_id}
            return await self.dependencies.send(page_request.request, page_request.ctx, result, headers)
        if isinstance(result, web_pages.Redirect):
            return browser_sessions.redirect_response(page_request.browser_session, result)
        opened = form_state.version if form_state is not None else None
        if form_state is not None and opened is not None and result.get("version", opened) != opened:
            form_state.mark_stale(await page_request.describe_newer_changes(opened), is_shown=True)
        caller, change_id = (
            page_request.ctx.principal,
            page_request.browser_session.read_notice(page_request.request).change_id,
        )
        may_undo = principal is not None and CUSTOMERS.VIEW in principal.permissions
        if change_id is not None and not (may_undo and await changes.is_undoable(page_request.ctx, change_id)):
            change_id = None
        shown = {"undoable_change": change_id, "preview": None, **variables}
        if caller is not None:
            shown |= {"unit": caller.load_unit, "today": caller.today()}
        return rendering.render_page(
            page_request.request,
            page_request.browser_session,
            page.template,
            shown | result | (additional_variables or {}),
            form_state=form_state,
            status=status,
            external_redirect=page.external_redirect,
        )

    async def _process_form(
        self, page_request: PageRequest, data: forms.FormData, upload: Upload
    ) -> web.StreamResponse:
        page, request, ctx = page_request.page, page_request.request, page_request.ctx
        claim = forms.create_claim(ctx, request, data, upload.digest) if page.runs_once else None
        try:
            arguments = page_request.arguments()
            if page.schema is not None:
                arguments["form"] = forms.load_form(page.schema, data)
            stored_file = forms.with_file(page, ctx, upload, arguments, self.dependencies.limits)
            schedule = None if page.preview_of else schedule_key(ctx, page.locks, arguments, arguments.get("form", {}))
            limiter = self.dependencies.limiter(page.request_class, ctx, schedule=schedule)
            async with stored_file as page_with_file, limiter:
                page_request = replace(page_request, ctx=await page_request.ctx.after_waiting())
                result = await self._run_handler(replace(page_request, page=page_with_file), arguments, claim)
            audit.record_access(page_request.ctx, audit.kind_of_path(page.path))
        except (ValidationError, *rendering.FORM_ERRORS) as failure:
            if page.on is None or (isinstance(failure, errors.NotFound) and page.form is None):
                raise
            error = failure if isinstance(failure, ValidationError) else rendering.to_service_error(request, failure)
            names = forms.field_names(page.schema) | {*(page.upload.file_fields if page.upload else ())}
            messages = forms.file_messages(page.upload)
            form_state, status = rendering.reject(page.form_name, page.path, data, error, names, messages)
            if rendering.is_scripted(request):
                is_stale = isinstance(error, errors.Conflict) and error.code == "VERSION_CONFLICT"
                if is_stale and form_state.version is not None:
                    newer = await page_request.describe_newer_changes(form_state.version)
                    form_state.mark_stale(newer, is_shown=False)
                return rendering.rejection_response(page_request.browser_session, failure, form_state, status)
            response = await self._render(page_request, form_state, status=status)
            if isinstance(error, errors.ServiceError):
                response.headers.update(error.headers)
            return response
        if isinstance(result, web_pages.QueuedTask):
            result = web_pages.Redirect(await result.begin(claim))
        return await self._form_response(page_request, result, data)

    async def _run_handler(self, page_request: PageRequest, arguments: dict[str, Any], claim: Claim | None) -> Any:
        page, ctx = page_request.page, page_request.ctx
        if claim is not None and page.external_redirect and not await forms.is_first(ctx, claim):
            raise errors.Conflict(_CONSENT_REPEATED)  # the authorization code in the first redirect works once
        if claim is None or page.on is None or page.request_class != "database" or page.external_redirect:
            return await page.handler(ctx, **arguments)
        page_url = self._page_url(page, page_request.request)
        return await forms.run_once(ctx, claim, page, page_url, arguments)

    async def _form_response(self, page_request: PageRequest, result: Any, data: forms.FormData) -> web.StreamResponse:
        if isinstance(result, web.StreamResponse):
            return result
        if isinstance(result, web_pages.Redirect) and rendering.is_scripted(page_request.request):
            return rendering.success_response(page_request.browser_session, result)
        if isinstance(result, web_pages.Redirect):
            change_id = next(iter(page_request.ctx.change_ids), None)
            if result.part and page_request.request.headers.get("HX-Request") == "true":
                result = replace(result, location=result.part)
            return browser_sessions.redirect_response(page_request.browser_session, result, change_id)
        if isinstance(result, web_pages.Render):
            page = page_request.page
            form_state = forms.FormState(page.form_name, data) if page.preview_of is not None else None
            return await self._render(page_request, form_state, result.variables)
        raise TypeError(f"{page_request.page.path}: a form returns a Redirect or Render")

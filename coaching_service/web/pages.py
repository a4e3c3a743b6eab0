"""Declarations of pages and forms, read by the application and by its tests, and those of a type of record.

pages = Pages("/app")

@pages.get("/customers/{customerId}", access=coach(CUSTOMERS.VIEW), template="customer.html")
async def customer(ctx, customer_id):
    return {"customer": await customers.read(ctx, customer_id)}

@pages.post("/customers/{customerId}/rename", access=coach(CUSTOMERS.EDIT), form=NewName, on=customer)
async def rename(ctx, customer_id, form):
    await customers.change(ctx, customer_id, form)
    return Redirect(f"/app/customers/{customer_id}", "Client renamed.")
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, TypeVar, is_typeddict
from urllib.parse import urlencode

from marshmallow import Schema, fields
from marshmallow.validate import Regexp

from coaching_service.core.auth import Access, Area, coach
from coaching_service.core.database.context import Context, Schedule
from coaching_service.core.fields import Default, input_of, with_schemas
from coaching_service.core.http.routes import MultipartBody, RequestClass
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import camel_case, snake_case
from coaching_service.core.validation import Input, Integer, Text, Version
from coaching_service.people.sessions.service import StartedSession

Handler = Callable[..., Awaitable[Any]]
Action = Callable[..., Awaitable[object]]
T = TypeVar("T")
IDENTIFIER = "[0-9a-fA-F]{24}"


@dataclass(frozen=True)
class Redirect:
    """A response that redirects to `location`, where `notice` is shown once.

    `session` is a sign-in session that starts, `ends_session` ends the present one. `customer_id`: the client the
    change was about, when the form's path does not name one. `data`: what a script that sent the form receives.
    `device_token`: a new one of this browser, if no session starts.
    `provider_state`: what the browser keeps for 5 minutes of a sign-in at the OpenID provider; empty: nothing more.
    `part`: where a form sent by htmx leads instead: a page that has the part of `location` that the form changed.
    """

    location: str
    notice: str = ""
    session: StartedSession | None = None
    ends_session: bool = False
    customer_id: ObjectId | None = None
    data: Mapping[str, object] | None = None
    part: str = ""
    device_token: str = ""
    provider_state: str | None = None


@dataclass(frozen=True)
class Render:
    """A response to a form that renders the form's page with additional `variables` (a new API key, for example).

    They are not stored: when the same form is sent again, the page is shown with `repeat_notice` instead.
    """

    variables: dict[str, Any]
    repeat_notice: str


@dataclass(frozen=True)
class QueuedTask:
    """A response to a form that begins a job, once for the claim of the form, and redirects to what `begin` returns."""

    begin: Callable[[Claim | None], Awaitable[str]]


@dataclass(frozen=True)
class Page:
    """One page (GET) or one form (POST).

    A page handler returns the variables of its `template`, a Redirect or a Download. A form handler returns a Redirect,
    Render or QueuedTask; a form that is rejected renders its page (`on`) again with the submitted values
    and errors.
    A page whose variables contain `version` also shows the stored values when another change was saved meanwhile.
    """

    method: Literal["GET", "POST"]
    path: str
    access: Access
    handler: Handler
    template: str = ""
    # A TypedDict or schema; an invalid query is treated as an empty one.
    query: Schema | None = None
    # A TypedDict or schema, or a multipart body as in routes: the handler also receives `file`, which is stored if it
    # succeeds. With several file fields it receives `files` (see forms.py).
    form: Schema | MultipartBody | None = None
    # The handler of the page that has the form.
    on: Handler | None = None
    # As for REST routes; a form of class `database` runs in one transaction.
    request_class: RequestClass = "database"
    # The owner of the schedule that the form changes, as for REST routes.
    locks: Schedule | None = None
    # The form may redirect to another site (OAuth consent), so the policy omits `form-action`.
    external_redirect: bool = False
    # The handler also receives `request`.
    with_request: bool = False
    # The form may run as often as it is sent; any other runs once (see forms.py).
    idempotent: bool = False
    # The form deletes something, so that it is possible on a full disk.
    deletes: bool = False
    # The client in the path is deleted, so the stored outcome is not linked to them.
    deletes_customer: bool = False
    # The form changes nothing: it redirects to the same path with its values as the query, which renders its page with
    # what another form would do; so the browser can go back to it and reload it.
    preview_of: Handler | None = None
    # A mail program sends the form without a page too, with the token that was mailed in the query (RFC 8058).
    one_click: bool = False
    # The form may be sent without a file; `file` is None then.
    file_optional: bool = False
    # The form has a table, or a row for each name in a file: more than people type.
    has_table: bool = False
    # Names in the path, and the arguments of the handler; set from `path`.
    path_parameters: tuple[tuple[str, str], ...] = field(default=())

    @property
    def name(self) -> str:
        """The form's name in templates, `form("rename")`, and of what is requested."""
        return self.handler.__name__ if self.preview_of is None else f"preview_{self.preview_of.__name__}"

    @property
    def form_name(self) -> str:
        """The name of the form whose values and errors are shown after this one."""
        return (self.preview_of or self.handler).__name__

    @property
    def runs_once(self) -> bool:
        """Whether a form that is sent twice is processed once."""
        if self.external_redirect:
            return True
        return self.access.audience != "public" and not self.idempotent and self.preview_of is None

    @property
    def has_mailed_token(self) -> bool:
        """Whether the form is on a page with a mailed token in its query, which it sends."""
        return self.schema is not None and "token" in self.schema.fields

    @property
    def upload(self) -> MultipartBody | None:
        """The form, if it has a file."""
        return self.form if isinstance(self.form, MultipartBody) else None

    @property
    def schema(self) -> Schema | None:
        """The schema of the form's text fields, if it has any."""
        if isinstance(self.form, MultipartBody):
            return self.form.schema if self.form.text_fields else None
        return self.form

    @property
    def pattern(self) -> str:
        """The path as aiohttp matches it: every parameter is an identifier."""
        return re.sub(r"{(\w+)}", rf"{{\1:{IDENTIFIER}}}", self.path)


class Pages:
    """The pages declared under one path prefix. `locks`: of each form."""

    def __init__(self, prefix: str, *, locks: Schedule | None = None) -> None:
        self.prefix, self.locks = prefix, locks
        self.declared: list[Page] = []

    def below(self, path: str, *, locks: Schedule | None = None) -> Pages:
        """Return the pages under a longer prefix; they are declared with these, and lock the same by default."""
        pages = Pages(self.prefix + path, locks=locks or self.locks)
        pages.declared = self.declared
        return pages

    def get(self, path: str, *, access: Access, template: str, **options: Any) -> Callable[[Handler], Handler]:
        """Declare a page."""
        return self._declare("GET", path, access, {"template": template, **options})

    def post(self, path: str, *, access: Access, on: Handler | None, **options: Any) -> Callable[[Handler], Handler]:
        """Declare a form on the page `on`."""
        return self._declare("POST", path, access, {"on": on, "locks": self.locks, **options})

    def act(
        self,
        path: str,
        name: str,
        do: Action,
        notice: str = "",
        *,
        access: Access,
        on: Handler,
        to: str = "",
        fields: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """Declare the form `name` on the page `on`, which calls `do` and then leads to a page with a notice.

        `do` receives the identifiers in the path and the form, or `fields` of it. `to` is the path of the page, by
        default of `on`; it and `notice` may name those and the fields of what `do` returns: `{name} archived.`
        """
        location = to or next(page.path for page in self.declared if page.handler is on)

        async def act(ctx: Context, **arguments: Any) -> Redirect:
            form = arguments.get("form", {})
            sent = [each for each in arguments.values() if each is not form or not fields]
            result = await do(ctx, *sent, *(form[each] for each in fields))
            return _lead(location, notice, arguments, result if isinstance(result, dict) else {})

        act.__name__ = name
        self.post(path, access=access, on=on, **options)(act)

    def confirm(
        self, path: str, do: Action, notice: str, *, access: Access, template: str, to: str = "", **options: Any
    ) -> Callable[[Handler], Handler]:
        """Declare a page that asks before something is deleted, by the function with its variables, and its form.

        The form has the name of the function, calls `do` with the identifiers in the path, and leads to the page `to`,
        by default the list at the beginning of `path`; both and `notice` may name the identifiers and the variables.
        """
        location = to or self.prefix + path.partition("/{")[0]

        def declare(ask: Handler) -> Handler:
            async def page(ctx: Context, **identifiers: ObjectId) -> Any:
                return await ask(ctx, **identifiers)

            async def form(ctx: Context, **identifiers: ObjectId) -> Redirect:
                variables = await ask(ctx, **identifiers)
                await do(ctx, *identifiers.values())
                return _lead(location, notice, identifiers, variables)

            form.__name__ = ask.__name__
            self.get(path, access=access, template=template)(page)
            return self.post(path, access=access, on=page, deletes=True, **options)(form)

        return declare

    def _declare(
        self, method: Literal["GET", "POST"], path: str, access: Access, options: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        full_path = self.prefix + path
        parameters = tuple((name, snake_case(name)) for name in re.findall(r"{(\w+)}", full_path))

        def declare(handler: Handler) -> Handler:
            with_all = with_schemas(options, handler, in_browser=True)
            self.declared.append(Page(method, full_path, access, handler, path_parameters=parameters, **with_all))
            return handler

        return declare


def own(do: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """Return what calls `do` for the caller, a client, whose identifier comes first."""
    return lambda ctx, *arguments, **options: do(ctx, ctx.caller.id, *arguments, **options)


def _lead(location: str, notice: str, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> Redirect:
    """Return the redirect after a form, with the values that the location and the notice name."""
    named = {camel_case(name): value for name, value in arguments.items()} | {**result}
    return Redirect(location.format_map(named), notice.format_map(named))


# --- Queries of pages: search fields, filters and the part of a list, and the URLs of lists with them -----------------


# The values of a filter, any of which matches; without a value everything does.
FilterValues: TypeAlias = Annotated[list[str], fields.List(fields.String()), Default(list)]


class Keywords(Text):
    """Search text from a URL: truncated to the maximum length, control characters become spaces; never rejected."""

    def __init__(self) -> None:
        super().__init__(allow_blank=True, load_default="")

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = "".join(" " if unicodedata.category(char) == "Cc" else char for char in str(value))
        return super()._deserialize(text.strip()[: self.max_length], attr, data, **kwargs)


class KeywordQuery(TypedDict):
    """What is searched in a list."""

    keywords: Annotated[str, Keywords()]


class PageQuery(TypedDict):
    """The page of a list to show."""

    page: Annotated[int, Integer(minimum=1), Default(1)]


class PartQuery(TypedDict):
    """A part of a list: `after` is the cursor of the one before."""

    after: Annotated[str | None, fields.String()]


class Search(KeywordQuery, PageQuery):
    """What is searched in a list, and the page of the results to show."""


class MonthQuery(TypedDict):
    """`month` is `YYYY-MM`; without it the page chooses one."""

    month: Annotated[str | None, Text(validate=Regexp("(19|20|21)\\d\\d-(0[1-9]|1[0-2])\\Z"))]


class ReturnTo(TypedDict):
    """`next` is the page to return to."""

    next: Annotated[str | None, fields.String()]


def list_url(path: str, query: Mapping[str, object], **defaults: object) -> Callable[..., str]:
    """Return a function for templates that returns the URL of a list with some parameters of `query` changed.

    Empty parameters, defaults and the first page are left out: `list_url("/app/programs", query)(page=2)`.
    """
    defaults = {"page": 1, **defaults}

    def build_url(**changes: Any) -> str:
        parameters = {
            name: "true" if value is True else value
            for name, value in {**query, **changes}.items()
            if value and value != defaults.get(name)
        }
        return f"{path}?{urlencode(parameters, doseq=True)}" if parameters else path

    return build_url


# --- The pages of one type of record, declared once: its list, a new one, the page of each, its change and deletion ---
# _forms = Records(pages, "/settings/forms", "formId", "form", FORMS, forms.get)
#
# @_forms.list
# async def forms_page(ctx): ...
#
# _forms.change(FormUpdate, forms.update, on=_forms.page())
# _forms.delete(forms.delete)


class _WithVersion(Input):
    version = Version(required=True)


_Read = Callable[[Context, ObjectId], Awaitable[Any]]


class Records(Pages):
    """The pages of one type of record: `name` names its forms and templates, and its variable unless `shown_as` does.

    `parameter` is its identifier in paths, `area` has its permissions (or is the access to all of its pages), and
    `read` returns a record with its `name`. `folder` has its templates, and the layout of the page that asks before a
    record is deleted. `locks`: of the forms of a record.
    """

    def __init__(
        self,
        above: Pages,
        path: str,
        parameter: str,
        name: str,
        area: Area | Access,
        read: _Read,
        *,
        folder: str = "settings",
        shown_as: str = "",
        locks: Schedule | None = None,
    ) -> None:
        super().__init__(above.prefix + path)
        self.declared = above.declared
        self.each = self.below(f"/{{{parameter}}}", locks=locks)
        self._name, self._area, self._read, self._folder = name, area, read, folder
        self._shown_as = shown_as or name
        self._layout = "settings/layout.html" if folder == "settings" else f"{folder}/{name}_layout.html"
        self._list_page: Handler | None = None

    def path(self, record_id: ObjectId) -> str:
        """Return the path of the page of a record."""
        return f"{self.prefix}/{record_id}"

    def list(self, handler: Handler) -> Handler:
        """Declare the list of records."""
        self._list_page = handler
        return self.get("", access=self._access("view"), template=f"{self._folder}/{self._name}s.html")(handler)

    def create(self, path: str = "", **options: Any) -> Callable[[Handler], Handler]:
        """Declare the form that creates a record, on the list unless `on` is another page."""
        return self.post(path, access=self._access("create"), **{"on": self._list_page, **options})

    def page(self, variables: Callable[[Any], Mapping[str, Any]] = lambda _: {}, *, path: str = "") -> Handler:
        """Declare the page of a record, with `variables` of the record; with `path` the page that changes it."""

        async def page(ctx: Context, **identifiers: ObjectId) -> dict[str, Any]:
            record = await self._read(ctx, *identifiers.values())
            return {self._shown_as: record, "version": record["version"], **variables(record)}

        name = f"edit_{self._name}" if path else self._name
        page.__name__ = f"{name}_page"
        access = self._access("edit" if path else "view")
        return self.each.get(path, access=access, template=f"{self._folder}/{name}.html")(page)

    def change(self, form: Any, save: Callable[[Context, ObjectId, Any], Awaitable[object]], *, on: Handler) -> None:
        """Declare the form that changes a record, at the path of its page; a TypedDict is completed by the version."""
        form = input_of(form, _WithVersion)() if is_typeddict(form) else form
        path = "/edit" if on.__name__.startswith("edit_") else ""
        options = {"access": self._access("edit"), "on": on, "to": self.each.prefix, "form": form}
        self.each.act(path, f"update_{self._name}", save, "Changes saved.", **options)

    def delete(
        self, remove: _Read, *, variables: _Read | None = None, done: str = "{name} deleted.", from_list: bool = False
    ) -> None:
        """Declare the page that asks before a record is deleted, with `variables`, and its form.

        `done` is what the list says then, as `notice` of `confirm`; `from_list`: the page is opened from the list.
        """

        async def delete(ctx: Context, **identifiers: ObjectId) -> dict[str, Any]:
            [record_id] = identifiers.values()
            record, path = await self._read(ctx, record_id), self.path(record_id)
            return {
                self._shown_as: record,
                "name": record.get("name"),
                "words": self._name.replace("_", " "),
                "layout": self._layout,
                "delete_path": f"{path}/delete",
                "cancel_path": self.prefix if from_list else path,
                **(await variables(ctx, record_id) if variables else {}),
            }

        delete.__name__ = f"delete_{self._name}"
        template = f"{self._folder}/delete_{self._name}.html"
        options: dict[str, Any] = {"access": self._access("delete"), "template": template, "to": self.prefix}
        self.each.confirm("/delete", remove, done, **options)(delete)

    def _access(self, action: str) -> Access:
        return coach(f"{self._area.name}.{action}") if isinstance(self._area, Area) else self._area

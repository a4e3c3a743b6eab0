"""The declaration of a page: serving, its tests and the walk over every page read it.

pages = Pages("/app")

@pages.get("/customers/{customerId}", access=coach(CUSTOMERS.VIEW), template="customer.html")
async def customer(ctx, customer_id):
    return {"customer": await customers.read(ctx, customer_id)}

@pages.post("/customers/{customerId}/rename", access=coach(CUSTOMERS.EDIT), form=NewName(), on=customer)
async def rename(ctx, customer_id, form):
    await customers.change(ctx, customer_id, form)
    return Redirect(f"/app/customers/{customer_id}", "The client has a new name.")
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from marshmallow import Schema

from coaching_service.core.auth.access import Access
from coaching_service.core.http.routes import MultipartBody, RequestClass
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import snake_case

Handler = Callable[..., Awaitable[Any]]
IDENTIFIER = "[0-9a-fA-F]{24}"


@dataclass(frozen=True)
class Redirect:
    """An answer: go to `to`, and find `notice` there once.

    `session`: the token of a session begun; `ends`: the session at hand has ended. `about`: the client it tells of,
    when the form's address does not name one.
    """

    location: str
    notice: str = ""
    session_token: str | None = None
    ends_session: bool = False
    customer_id: ObjectId | None = None


@dataclass(frozen=True)
class Render:
    """A form's answer that is its page once more, with these variables added (a secret that is shown once, say).

    `again` is what the page says when the same form is sent a second time: the variables are kept nowhere.
    """

    variables: dict[str, Any]
    repeat_notice: str


@dataclass(frozen=True)
class StreamedTask:
    """A form's answer that takes a while: its page grows while `work` goes on.

    `template` says `<!--progress-->` where the progress goes. `work` is given what to call after each step with the
    result so far (`requested`, `ok`, `failed`), and gives the whole as a document; `total` is how many there will be.
    `back` is where one goes on afterwards.
    """

    template: str
    variables: dict[str, Any]
    total: int
    work: Callable[[Callable[[Any], Awaitable[None]]], Awaitable[dict[str, Any]]]
    return_url: str


@dataclass(frozen=True)
class Page:
    """One page (GET) or one form (POST).

    A page handler returns the variables of its `template`, or a Redirect. A form handler returns a Redirect, Render or
    StreamedTask; a form that is rejected renders its page (`on`) again with the submitted values and the errors. A page
    whose variables contain `version` also shows the stored values when another change was saved in the meantime.

    `query` and `form` are schema instances; an invalid query is treated as an empty one. A form with a file is a
    multipart body as in routes: its handler also receives `file`, which is stored if the handler succeeds.
    `request_class`: as for REST routes; a form of class `database` runs in one transaction.
    `external_redirect`: the form may redirect to another site (OAuth consent), so the policy omits `form-action`.
    `with_request`: the handler also receives `request`.
    `idempotent`: the form may run as often as it is sent; any other runs once (see form_idempotency.py).
    `deletes_customer`: the client in the path is deleted, so the stored outcome is not linked to them.
    """

    method: Literal["GET", "POST"]
    path: str
    access: Access
    handler: Handler
    template: str = ""
    query: Schema | None = None
    form: Schema | MultipartBody | None = None
    on: Handler | None = None
    request_class: RequestClass = "database"
    external_redirect: bool = False
    with_request: bool = False
    idempotent: bool = False
    deletes_customer: bool = False
    path_parameters: tuple[tuple[str, str], ...] = field(default=())

    @property
    def name(self) -> str:
        """The name of the form, by which a template knows it."""
        return self.handler.__name__

    @property
    def upload(self) -> MultipartBody | None:
        """The form, if it has a file."""
        return self.form if isinstance(self.form, MultipartBody) else None

    @property
    def schema(self) -> Schema | None:
        """What the form's text fields are read by."""
        return self.form.schema if isinstance(self.form, MultipartBody) else self.form

    @property
    def pattern(self) -> str:
        """The path as aiohttp matches it: parameters are identifiers, anything else is another path."""
        return re.sub(r"{(\w+)}", rf"{{\1:{IDENTIFIER}}}", self.path)


class Pages:
    """Pages under one prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.declared: list[Page] = []

    def get(self, path: str, *, access: Access, template: str, **options: Any) -> Callable[[Handler], Handler]:
        """Declare a page."""
        return self._declare("GET", path, access, {"template": template, **options})

    def post(self, path: str, *, access: Access, on: Handler | None, **options: Any) -> Callable[[Handler], Handler]:
        """Declare a form."""
        return self._declare("POST", path, access, {"on": on, **options})

    def _declare(
        self, method: Literal["GET", "POST"], path: str, access: Access, options: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        whole = self.prefix + path
        parameters = tuple((wire, snake_case(wire)) for wire in re.findall(r"{(\w+)}", whole))

        def declare(handler: Handler) -> Handler:
            self.declared.append(Page(method, whole, access, handler, path_parameters=parameters, **options))
            return handler

        return declare

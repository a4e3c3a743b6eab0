"""The declaration of a page: serving, its tests and the walk over every page read it.

pages = Pages("/app")

@pages.get("/customers/{customerId}", access=coach(CUSTOMERS.VIEW), template="customer.html")
async def customer(ctx, customer_id):
    return {"customer": await customers.read(ctx, customer_id)}

@pages.post("/customers/{customerId}/rename", access=coach(CUSTOMERS.EDIT), form=NewName(), on=customer)
async def rename(ctx, customer_id, form):
    await customers.change(ctx, customer_id, form)
    return Go(f"/app/customers/{customer_id}", "The client has a new name.")
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from marshmallow import Schema

from coaching_service.core.auth.access import Access
from coaching_service.core.http.routes import Form, Lane
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import snake_case

Handler = Callable[..., Awaitable[Any]]
IDENTIFIER = "[0-9a-fA-F]{24}"


@dataclass(frozen=True)
class Go:
    """An answer: go to `to`, and find `notice` there once.

    `session`: the token of a session begun; `ends`: the session at hand has ended. `about`: the client it tells of,
    when the form's address does not name one.
    """

    to: str
    notice: str = ""
    session: str | None = None
    ends: bool = False
    about: ObjectId | None = None


@dataclass(frozen=True)
class Show:
    """A form's answer that is its page once more, with these variables added (a secret that is shown once, say).

    `again` is what the page says when the same form is sent a second time: the variables are kept nowhere.
    """

    variables: dict[str, Any]
    again: str


@dataclass(frozen=True)
class Working:
    """A form's answer that takes a while: its page grows while `work` goes on.

    `template` says `<!--progress-->` where the progress goes. `work` is given what to call after each step with the
    result so far (`requested`, `ok`, `failed`), and gives the whole as a document; `total` is how many there will be.
    `back` is where one goes on afterwards.
    """

    template: str
    variables: dict[str, Any]
    total: int
    work: Callable[[Callable[[Any], Awaitable[None]]], Awaitable[dict[str, Any]]]
    back: str


@dataclass(frozen=True)
class Page:
    """One page or one form.

    A page (GET) gives the variables of its `template`, or Go. A form (POST) gives Go, Show or Working; when it is not
    accepted, the page `on` which it stands is shown again with what was typed and what is wrong. A page that gives the
    `version` of what its form changes (in it: `ui.version`) also shows what is stored now, and goes on from there.
    `query` and `form` are schema instances; a query that is not well-formed is as if it were not there. A form with a
    file is a multipart Form as routes have it: its handler also gets `file`, stored, and kept if all goes well.
    `lane`: as for REST routes; a form in the lane of the database is done in one transaction. `leads_away`: its form
    may lead to another site by a redirect (an assistant's consent), so the page's policy does not say where forms may
    go. `takes_request`: the handler also gets `request`. `repeatable`: a form that only says how things are to be, and
    is done as often as it is sent; any other is done once (see once.py). `erases`: the client whom the path names is
    gone afterwards, so what is remembered of the form names nobody, and stays.
    """

    method: Literal["GET", "POST"]
    path: str
    access: Access
    handler: Handler
    template: str = ""
    query: Schema | None = None
    form: Schema | Form | None = None
    on: Handler | None = None
    lane: Lane = "database"
    leads_away: bool = False
    takes_request: bool = False
    repeatable: bool = False
    erases: bool = False
    path_parameters: tuple[tuple[str, str], ...] = field(default=())

    @property
    def name(self) -> str:
        """The name of the form, by which a template knows it."""
        return self.handler.__name__

    @property
    def upload(self) -> Form | None:
        """The form, if it has a file."""
        return self.form if isinstance(self.form, Form) else None

    @property
    def schema(self) -> Schema | None:
        """What the form's text fields are read by."""
        return self.form.schema if isinstance(self.form, Form) else self.form

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

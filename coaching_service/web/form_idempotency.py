"""A form is done once: sent again as it was (pressed twice, reloaded), it gives the outcome of the first time.

Every form carries a token made when its page was drawn. What is typed counts too: the page brought back, and sent with
something else in it, is another form. The outcome is kept in the transaction of the change itself, for a day.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
from typing import Any

import orjson
from aiohttp import web

from coaching_service.core import idempotency
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.idempotency import Claim, RequestInProgress, StoredResponse
from coaching_service.core.ids import ObjectId
from coaching_service.web.forms import FormData
from coaching_service.web.pages import Page, Redirect, Render

SUBMISSION_FIELD = "submission"
_AGAIN = "It was sent twice, and done once."
_PATIENCE, _LOOK_EVERY = 5.0, 0.1


def claim_of(ctx: Context, request: web.Request, sent: FormData, file: str) -> Claim | None:
    """What stands for this form as it was filled in, whose token is taken out of `sent`; None without a token.

    `file`: the hash of the file in it, or empty.
    """
    token = sent.popall(SUBMISSION_FIELD, [""])[0]
    if not token or ctx.principal is None:
        return None
    whole = orjson.dumps([str(ctx.caller.id), token, request.path_qs, list(sent.items()), file])
    return Claim.of(ctx, hashlib.sha256(whole).hexdigest(), request.method, request.path, None)


async def done(ctx: Context, claim: Claim, page: Page, standing: str, arguments: dict[str, Any]) -> Any:
    """The answer of a form's handler, which is run in one transaction with the note of its outcome; of a form that was
    sent before, where the first time led. `standing`: the address of the form's page. Raises what the handler does,
    and StillRunning."""
    first: Any = None
    begun = False

    async def work(tx: Context) -> tuple[StoredResponse, ObjectId | None]:
        nonlocal begun, first
        begun = True
        first = await page.handler(tx, **copy.deepcopy(arguments))  # run again when the transaction collides
        if isinstance(first, Render):
            return _kept(standing, first.repeat_notice), None
        return _kept(first.location, _AGAIN if page.deletes_customer else f"{first.notice} {_AGAIN}"), first.customer_id

    try:
        kept = await _claimed(ctx, claim, None if page.deletes_customer else arguments.get("customer_id"), work)
    except (Forbidden, NotFound):
        if begun:
            raise
        return Redirect("/app", _AGAIN)  # the client it was about has gone, it may be by this form
    return Redirect(**orjson.loads(kept.body)) if kept.replayed else first


async def is_first(ctx: Context, claim: Claim) -> bool:
    """Whether work that is not one transaction, or whose outcome is not to be told again, may begin: nobody has begun
    it by this form."""

    async def work(_: Context) -> tuple[StoredResponse, ObjectId | None]:
        return _kept("", ""), None

    try:
        return not (await idempotency.once(ctx, claim, None, work)).replayed
    except RequestInProgress:
        return False


async def _claimed(ctx: Context, claim: Claim, about: ObjectId | None, work: Any) -> StoredResponse:
    """Somebody who presses twice sees the answer to the second time: it waits for the first."""
    for _ in range(int(_PATIENCE / _LOOK_EVERY)):
        try:
            return await idempotency.once(ctx, claim, about, work)
        except RequestInProgress:
            await asyncio.sleep(_LOOK_EVERY)
    return await idempotency.once(ctx, claim, about, work)


def _kept(to: str, notice: str) -> StoredResponse:
    return StoredResponse(303, orjson.dumps({"location": to, "notice": notice.strip()}))

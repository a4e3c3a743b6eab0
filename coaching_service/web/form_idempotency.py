"""Idempotent forms: a form that is sent twice (double click, reload) runs once and returns the first outcome.

Every rendered form carries a submission token. The outcome is stored for a day, in the transaction of the change. The
values count too: a page that is opened again and sent with other values is another submission.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
from aiohttp import web

from coaching_service.core import idempotency
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import wait_for_caches
from coaching_service.core.errors import Forbidden, NotFound, invalid_field
from coaching_service.core.http.responses import to_json
from coaching_service.core.idempotency import Claim, RequestInProgress, StoredResponse
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.results import without_inner_marks
from coaching_service.integrations.proposals.versions import AMOUNTS, find_unusual, read_versions
from coaching_service.web.forms import FormData
from coaching_service.web.pages import Page, Redirect, Render

SUBMISSION_FIELD = "submission"
_REPEATED = "The form was sent twice and processed once."
_WAIT_SECONDS, _RETRY_SECONDS = 5.0, 0.1


def create_claim(ctx: Context, request: web.Request, data: FormData, file_hash: str) -> Claim | None:
    """Return the claim of a submission and remove its token from `data`; None without a token.

    `file_hash`: the hashes of the form's files.
    """
    token = data.popall(SUBMISSION_FIELD, [""])[0]
    if not token or ctx.principal is None:
        return None
    fingerprint = orjson.dumps([str(ctx.caller.id), token, request.path_qs, list(data.items()), file_hash])
    return Claim.of(ctx, hashlib.sha256(fingerprint).hexdigest(), request.method, request.path, None)


async def run_once(ctx: Context, claim: Claim, page: Page, page_url: str, arguments: dict[str, Any]) -> Any:
    """Run a form's handler and store its outcome in one transaction; return its result.

    A repeated submission returns a Redirect to where the first one led. `page_url`: the URL of the form's page.
    Raises what the handler raises, and RequestInProgress.
    """
    submission = _Submission(page, page_url, arguments)
    customer_id = None if page.deletes_customer else arguments.get("customer_id")
    try:
        stored = await _wait_for_first(ctx, claim, customer_id, submission.run)
    except (Forbidden, NotFound):
        if submission.started:
            raise
        return Redirect("/app", _REPEATED)  # the client is gone, perhaps deleted by the first submission
    if not stored.replayed:
        return submission.result
    await wait_for_caches(ctx)  # as the first submission does, which may not have been answered yet
    return Redirect(**orjson.loads(stored.body))


async def is_first(ctx: Context, claim: Claim) -> bool:
    """Claim a submission whose outcome is not stored; return whether it is the first."""
    try:
        stored = await idempotency.run_once(ctx, claim, None, _store_nothing)
    except RequestInProgress:
        return False
    return not stored.replayed


class _Submission:
    """Runs the handler of one submission; has its result afterwards."""

    def __init__(self, page: Page, page_url: str, arguments: dict[str, Any]) -> None:
        self.page, self.page_url, self.arguments = page, page_url, arguments
        self.started = False
        self.result: Any = None

    async def run(self, tx: Context) -> tuple[StoredResponse, ObjectId | None]:
        """Run the handler, again if the transaction is retried; return the outcome to store and its client."""
        self.started = True
        self.result = await self.page.handler(tx, **copy.deepcopy(self.arguments))
        if self.arguments.get("form", {}).get("confirmed") is False:
            await _require_usual(tx)
        if isinstance(self.result, Render):
            return _outcome(self.page_url, self.result.repeat_notice), None
        notice = _REPEATED if self.page.deletes_customer else f"{self.result.notice} {_REPEATED}"
        return _outcome(self.result.location, notice, self.result.part, self.result.data), self.result.customer_id


async def _require_usual(tx: Context) -> None:
    """Raise InvalidFields if a form has saved loads or other amounts that are unusual, before the user confirms them.

    The template shows `ui.confirm_values` then.
    """
    if found := await find_unusual(tx, await read_versions(tx, AMOUNTS)):
        message = f"is unusual: {without_inner_marks(' '.join(found)).removesuffix('.')}"
        raise invalid_field("confirmed", message, code="UNUSUAL_AMOUNT")


async def _wait_for_first(
    ctx: Context,
    claim: Claim,
    customer_id: ObjectId | None,
    work: Callable[[Context], Awaitable[tuple[StoredResponse, ObjectId | None]]],
) -> StoredResponse:
    """Run the submission, or wait for the outcome of the same submission in another request."""
    for _ in range(int(_WAIT_SECONDS / _RETRY_SECONDS)):
        try:
            return await idempotency.run_once(ctx, claim, customer_id, work)
        except RequestInProgress:
            await asyncio.sleep(_RETRY_SECONDS)
    return await idempotency.run_once(ctx, claim, customer_id, work)


async def _store_nothing(_: Context) -> tuple[StoredResponse, ObjectId | None]:
    return _outcome("", ""), None


def _outcome(location: str, notice: str, part: str = "", data: Mapping[str, object] | None = None) -> StoredResponse:
    outcome = {"location": location, "notice": notice.strip(), "part": part, "data": data}
    return StoredResponse(303, to_json(outcome))

"""Dry runs: what an operation would do, while nothing is written. Where it is not supported, `dryRun` is an error."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import rehearse
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.external_identity import Upserted
from coaching_service.core.http.request_parsing import read_bytes
from coaching_service.core.http.routes import Body, Handler, Route
from coaching_service.core.ids import ObjectId

DRY_RUN = "dryRun"


async def reject_dry_run(route: Route, request: web.Request, limit: int) -> None:
    """Raise InvalidFields if the query of a write, or a body that it does not read, has `dryRun`.

    `limit`: bytes of the body, which may be of any content type. Bodies that it reads are checked by `reject_in_body`.
    """
    if route.method == "GET":
        return
    if DRY_RUN in request.query:
        raise _not_supported("is a field of the body, where it is supported")
    is_read = route.body is not None or route.multipart is not None
    if not is_read and request.body_exists and DRY_RUN.encode() in await read_bytes(request, limit):
        raise _not_supported("is not supported by this operation")


def reject_in_body(route: Route, names: Any) -> None:
    """Raise InvalidFields if a body, or the names of its parts, has `dryRun` and the operation does not support it."""
    if not route.takes_dry_run and isinstance(names, Collection) and DRY_RUN in names:
        raise _not_supported("is not supported by this operation")


def is_dry_run(route: Route, arguments: Mapping[str, Any]) -> bool:
    """Return whether the arguments of a handler ask for a dry run."""
    return route.takes_dry_run and bool(arguments["body"].get(DRY_RUN))


def rolling_back(handler: Handler, arguments: Mapping[str, Any]) -> Handler:
    """Return a handler that does the same in a transaction which is rolled back, and returns its result.

    Records that would be created, and their items, have no identifier.
    """

    async def rehearsed(ctx: Context, **_: object) -> object:
        async def work(tx: Context) -> object:
            result = await handler(tx, **arguments)
            created = {change.id for change in tx.changes.documents.values() if change.action == "created"}
            if isinstance(result, Upserted):
                return replace(result, record=_without_identifiers(result.record, created), created=False)
            return _without_identifiers(result, created)

        return await rehearse(ctx, work)

    return rehearsed


def without_dry_run(body: Body) -> Body:
    """Return a body without `dryRun`."""
    return {name: value for name, value in body.items() if name != DRY_RUN}


def _without_identifiers(value: Any, created: Collection[ObjectId]) -> Any:
    if isinstance(value, list):
        return [_without_identifiers(entry, created) for entry in value]
    if not isinstance(value, Mapping):
        return value
    result = {name: _without_identifiers(entry, created) for name, entry in value.items()}
    if value.get("_id") in created:
        result["_id"] = None
        if "items" in value:
            result["items"] = [{**item, "_id": None} for item in result["items"]]
    return result


def _not_supported(message: str) -> InvalidFields:
    return invalid_field(DRY_RUN, message, code="NOT_SUPPORTED")

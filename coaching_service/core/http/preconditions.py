"""Conditions of writes: `If-Match` with the version a change is based on, and `If-None-Match: *` for new records."""

from __future__ import annotations

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from aiohttp import hdrs, web
from marshmallow import Schema

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import BadRequest, Conflict, ExternalIdTaken, PreconditionFailed
from coaching_service.core.external_identity import Upserted
from coaching_service.core.http.compression import KEEPS_TAG
from coaching_service.core.http.routes import Route

_VERSION_TAG = re.compile(r'"(0|[1-9]\d{0,8})"')
_ITEM = "/witems/{witemId}"  # has the version of its block


def find_version_read(route: Route, routes: Sequence[Route]) -> Route | None:
    """Return the operation that reads the version of the record that `route` writes, if there is one."""
    path = route.path.removesuffix(_ITEM)
    return next((each for each in routes if each.method == "GET" and each.path == path and each.is_versioned), None)


def takes_if_match(route: Route, read: Route | None) -> bool:
    """Return whether a write can keep `If-Match`: PUT, PATCH or DELETE of a record whose version is known.

    `read`: see `find_version_read`.
    """
    return route.method in ("PUT", "PATCH", "DELETE") and (route.takes_version or read is not None)


def takes_if_none_match(route: Route) -> bool:
    """Return whether a write can keep `If-None-Match: *`: it creates the record that its path names, or changes it."""
    return route.upserts and route.method == "PUT"


def add_version_tag(response: web.Response, version: object) -> None:
    """Add the version of the record in a response as its `ETag`, which stays as it is when the body is compressed."""
    response.headers[hdrs.ETAG] = f'"{version}"'
    response[KEEPS_TAG] = True


def with_conditions(route: Route, read: Route | None, request: web.Request, body: MutableMapping[str, Any]) -> Route:
    """Return the route of a request with a handler that writes only if the conditions in the headers hold.

    `read`: see `find_version_read`. `body` gets the required version, if it can have one. The conditions are compared
    in the transaction of the write. Raises BadRequest (NOT_SUPPORTED) for a condition that the operation cannot keep,
    PreconditionFailed for one that cannot hold.
    """
    if not route.writes:
        return route
    if hdrs.IF_NONE_MATCH in request.headers:
        if (
            not takes_if_none_match(route)
            or _sent(request, hdrs.IF_NONE_MATCH) != "*"
            or hdrs.IF_MATCH in request.headers
        ):
            raise BadRequest("This operation does not support this If-None-Match", code="NOT_SUPPORTED")
        return _checking_existence(route, must_create=True)
    if hdrs.IF_MATCH not in request.headers:
        return route
    if not takes_if_match(route, read):
        raise BadRequest("This operation does not support If-Match", code="NOT_SUPPORTED")
    if (version := _required_version(_sent(request, hdrs.IF_MATCH))) is None:
        return _checking_existence(route, must_create=False)
    if not route.takes_version:
        return _reading_first(route, read, version)
    if body.get("version") not in (None, version):
        raise PreconditionFailed
    body["version"] = version
    return _checking_existence(route, must_create=False)


def _sent(request: web.Request, name: str) -> str:
    return ",".join(request.headers.getall(name)).strip()


def _required_version(condition: str) -> int | None:
    """Return the version that `If-Match` requires; None for `*`. Weak tags match nothing."""
    if condition == "*":
        return None
    versions = [int(tag) for tag in _VERSION_TAG.findall(re.sub(r'W/"[^"]*"', "", condition))]
    if len(versions) > 1:
        raise BadRequest("If-Match takes one version", code="NOT_SUPPORTED")
    if not versions:
        raise PreconditionFailed
    return versions[0]


def _exists_already() -> PreconditionFailed:
    return PreconditionFailed("A record with this identifier exists already", code="ALREADY_EXISTS")


def _checking_existence(route: Route, *, must_create: bool) -> Route:
    """Return a route whose handler fails if it creates a record that must exist, or finds one that must not."""

    async def write(tx: Context, **arguments: Any) -> object:
        result = await route.handler(tx, **arguments)
        if isinstance(result, Upserted) and result.created is not must_create:
            raise _exists_already() if must_create else PreconditionFailed()
        return result

    async def handle(ctx: Context, **arguments: Any) -> object:
        try:
            return await (
                in_transaction(ctx, lambda tx: write(tx, **arguments)) if route.upserts else write(ctx, **arguments)
            )
        except ExternalIdTaken:
            if not must_create:
                raise
            raise _exists_already() from None
        except Conflict as error:
            if error.code != "VERSION_CONFLICT":
                raise
            raise PreconditionFailed from None

    return replace(route, handler=handle)


def _reading_first(route: Route, read: Route | None, version: int) -> Route:
    """Return a route whose handler writes in a transaction that has read the record at `version`."""
    if read is None:
        raise TypeError(f"{route.method} {route.path}: no operation reads the version")

    async def handle(ctx: Context, **arguments: Any) -> object:
        of_record = {name: arguments[name] for _, name in read.path_parameters}
        if isinstance(read.query, Schema):
            of_record["query"] = read.query.load({})

        async def work(tx: Context) -> object:
            if (await read.handler(tx, **of_record))["version"] != version:
                raise PreconditionFailed
            return await route.handler(tx, **arguments)

        return await in_transaction(ctx, work)

    return replace(route, handler=handle)

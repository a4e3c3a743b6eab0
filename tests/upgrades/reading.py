"""What a service returns of stored records: the same before an upgrade and after it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

PAGE = "pageSize=50&pageNum="
DAYS = timedelta(days=40)


async def read_all(http: aiohttp.ClientSession) -> dict[str, list[str]]:
    """The identifiers in the response to each of many reads, by path. A path that the service does not have is left out."""
    today = datetime.now(UTC).date()
    clients = [f"/coach/customers?archived={archived}&{PAGE}" for archived in ("false", "true")]
    paths = [*clients, f"/exercises?{PAGE}", f"/coach/programs?archived=false&{PAGE}"]
    paths += ["/coach/forms", "/coach/metrics-sets", "/coach/workout-templates"]
    read = {path: await read_ids(http, path) for path in paths}
    for client in await read_clients(http):
        own = f"/coach/customers/{client}"
        calendar = f"/wblock?startDate={today - DAYS}&endDate={today + DAYS}"
        lists = ("", calendar, "/notes", "/messages", "/metrics-sets", "/personal-records", "/form-responses")
        paged = (f"/progress-photos?{PAGE}", f"/plan-versions?{PAGE}")
        read |= {own + path: await read_ids(http, own + path) for path in (*lists, *paged)}
    return {path: ids for path, ids in read.items() if ids is not None}


async def read_clients(http: aiohttp.ClientSession) -> list[str]:
    """The identifiers of the clients that are not archived, on the first page."""
    async with http.get(f"/coach/customers?archived=false&{PAGE}1") as response:
        return [each["_id"] for each in (await response.json())["docs"]]


async def read_ids(http: aiohttp.ClientSession, path: str) -> list[str] | None:
    """The identifiers in a response, or in all pages if the path ends with `pageNum=`; None if there is no such path."""
    identifiers: set[str] = set()
    page: int | None = 1
    while page is not None:
        is_paged = path.endswith("pageNum=")
        async with http.get(f"{path}{page}" if is_paged else path) as response:
            if response.status == 404:
                return None
            assert response.status == 200, f"{path}: {response.status} {await response.text()}"
            answer = await response.json()
        identifiers |= set(identifiers_in(answer))
        page = answer["nextPage"] if is_paged else None
    return sorted(identifiers)


def identifiers_in(answer: Any) -> Iterator[str]:
    """The values of all fields `_id` of a response, at any depth."""
    if isinstance(answer, list):
        for each in answer:
            yield from identifiers_in(each)
    elif isinstance(answer, dict):
        if isinstance(answer.get("_id"), str):
            yield answer["_id"]
        for value in answer.values():
            yield from identifiers_in(value)


def links_in(answer: Any) -> Iterator[str]:
    """The links to files of the service in a response, at any depth, from `/files/` on."""
    if isinstance(answer, str) and "/files/" in answer:
        yield answer[answer.index("/files/") :]
    for each in answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ():
        yield from links_in(each)

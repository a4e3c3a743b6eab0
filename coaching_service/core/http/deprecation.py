"""Operations that will be removed: what the API document and each response say about it (RFC 9745, RFC 8594)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from email.utils import format_datetime

from aiohttp import web


@dataclass(frozen=True)
class Deprecation:
    """The end of an operation, for the declaration of its route.

    `since`: the day (UTC) from which it is deprecated. `sunset`: the first day (UTC) on which it may be gone.
    `instead`: what to use, as the end of the sentence "Use ...".
    """

    since: date
    sunset: date
    instead: str

    @property
    def notice(self) -> str:
        """The sentences in the API document."""
        return f"Deprecated since {self.since}, removed on {self.sunset} or later. Use {self.instead}."

    def headers(self) -> dict[str, str]:
        """Return the headers of each response: `Deprecation` in seconds since 1970, `Sunset` as a date of HTTP."""
        since, sunset = (datetime.combine(day, time(), UTC) for day in (self.since, self.sunset))
        return {"Deprecation": f"@{int(since.timestamp())}", "Sunset": format_datetime(sunset, usegmt=True)}


_DEPRECATION = web.RequestKey("deprecation", Deprecation)


def mark_deprecated(request: web.Request, deprecation: Deprecation | None) -> None:
    """Note that the response to a request has to name the end of its operation, if it has one."""
    if deprecation is not None:
        request[_DEPRECATION] = deprecation


def deprecation_headers(request: web.Request) -> dict[str, str]:
    """Return the headers of a response to `request`: none if the operation is not deprecated."""
    deprecation = request.get(_DEPRECATION)
    return deprecation.headers() if deprecation is not None else {}

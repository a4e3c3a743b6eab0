"""Periods of availability as assistants read them."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.results import typed
from coaching_service.people.availability.models import Availability, AvailabilityKind

# `from` is a keyword of Python, so this type has the functional form.
_First = TypedDict("_First", {"from": str})


class AvailabilityText(_First):
    """A period in which a client cannot train as planned, as assistants read it."""

    _id: ObjectId
    kind: AvailabilityKind
    until: NotRequired[str]
    note: NotRequired[str]


def write_period(period: Availability) -> str:
    """Return a period in words, such as `ill 2026-03-02 to 2026-03-08 «Flu.»`."""
    end = "on, without an end yet" if period["until"] is None else f"to {period['until']}"
    return f"{period['kind']} {period['from']} {end}" + (f" {typed(period['note'])}" if period["note"] else "")

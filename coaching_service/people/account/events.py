"""Domain events about the company."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.events import DomainEvent


@dataclass(frozen=True)
class FigureSettingsChanged(DomainEvent):
    """The company's time zone, or its settings of attention, changed: figures stored with its clients follow them."""


@dataclass(frozen=True)
class LoadUnitChanged(DomainEvent):
    """The company's unit of load is being changed: subscribers raise Conflict if loads are stored in the other one."""

    load_unit: str


@dataclass(frozen=True)
class CompanyDeleted(DomainEvent):
    """The company was deleted; its data is still stored."""


@dataclass(frozen=True)
class CompanyResumed(DomainEvent):
    """The suspension of the company has ended: background work that has been put off continues."""

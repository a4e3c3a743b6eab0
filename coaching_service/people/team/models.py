"""Coaches as they are stored and returned."""

from __future__ import annotations

from typing import Literal, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.people.account.models import Account

CoachRole = Literal["OWNER", "EMPLOYEE"]
CustomersScope = Literal["all", "assigned"]


class Coach(Stored):
    """A stored coach. `permissions` are `area.action`; an owner has all of them, and the scope `all`."""

    name: str
    email: str
    role: CoachRole
    permissions: list[str]
    customersScope: CustomersScope


class CoachWithCompany(Coach):
    """A coach with the company's document."""

    company: Account


class NewEmployee(TypedDict):
    """An employee to add."""

    name: str
    email: str
    permissions: list[str]
    customersScope: CustomersScope


class EmployeeChange(TypedDict, total=False):
    """The fields of an employee to change; `version` is the one the change is based on."""

    name: str
    email: str
    permissions: list[str]
    customersScope: CustomersScope
    version: int

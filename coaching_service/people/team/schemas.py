"""Requests and responses of the team operations."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from coaching_service.core.auth.permissions import ALL_PERMISSIONS
from coaching_service.core.validation import Choice, DateTime, Email, Identifier, Input, ListOf, Output, Text, Version

SCOPES = ("all", "assigned")
_PERMISSIONS = {
    "description": "`area.action`; areas: customers, exercises, programs, forms, metrics, nutrition; "
    "actions: view, create, edit, delete."
}


class Permissions(ListOf):
    """Permissions by name, without duplicates, sorted."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Choice(*sorted(ALL_PERMISSIONS)), metadata=_PERMISSIONS, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return sorted(set(super()._deserialize(value, attr, data, **kwargs)))


class EmployeePermissions(Input):
    """The permissions of an employee, and the clients they apply to."""

    permissions = Permissions(required=True)
    customersScope = Choice(*SCOPES)
    version = Version()


class NewEmployee(Input):
    """An employee to add."""

    name = Text(required=True)
    email = Email(required=True)
    permissions = Permissions(load_default=list)
    customersScope = Choice(*SCOPES, load_default="all")


class Employee(Output):
    """An employee of the company."""

    _id = Identifier()
    name = fields.String()
    email = fields.String(metadata={"format": "idn-email"})
    role = Choice("EMPLOYEE")
    permissions = fields.List(fields.String(), metadata=_PERMISSIONS)
    customersScope = Choice(*SCOPES)
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()

"""The permissions of a coaching business: areas times actions, named `area.action` on the wire."""

from __future__ import annotations

from dataclasses import dataclass

ACTIONS = ("view", "create", "edit", "delete")


@dataclass(frozen=True)
class Area:
    """One area of the business; its four permissions are `CUSTOMERS.VIEW` ("customers.view") and so on."""

    name: str

    @property
    def VIEW(self) -> str:  # noqa: N802 - used like a constant: CUSTOMERS.VIEW
        """The permission to read."""
        return f"{self.name}.view"

    @property
    def CREATE(self) -> str:  # noqa: N802 - as VIEW
        """The permission to create."""
        return f"{self.name}.create"

    @property
    def EDIT(self) -> str:  # noqa: N802 - as VIEW
        """The permission to change."""
        return f"{self.name}.edit"

    @property
    def DELETE(self) -> str:  # noqa: N802 - as VIEW
        """The permission to delete."""
        return f"{self.name}.delete"


CUSTOMERS = Area("customers")
EXERCISES = Area("exercises")
PROGRAMS = Area("programs")
FORMS = Area("forms")
METRICS = Area("metrics")
NUTRITION = Area("nutrition")

AREAS = (CUSTOMERS, EXERCISES, PROGRAMS, FORMS, METRICS, NUTRITION)
ALL_PERMISSIONS = frozenset(f"{area.name}.{action}" for area in AREAS for action in ACTIONS)
READ_PERMISSIONS = frozenset(area.VIEW for area in AREAS)

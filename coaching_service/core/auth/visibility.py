"""What a caller may see now: clients, areas and days.

Lists, feeds, events, changes, workouts, tools, pages and exports ask `Visibility.allows`, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.auth.permissions import Area
from coaching_service.core.auth.principal import Principal
from coaching_service.core.ids import ObjectId


@dataclass(frozen=True, slots=True)
class Visibility:
    """What the caller of one request may see.

    `customer_ids`: the clients in scope; None: all of the company. `permissions`: a coach's; None: a client, who
    sees all areas of their own data. `hidden_days`: the days that are hidden from a client, as `YYYY-MM-DD`.
    """

    permissions: frozenset[str] | None
    customer_ids: frozenset[ObjectId] | None = None
    hidden_days: frozenset[str] = frozenset()

    def allows(self, *, customer_id: ObjectId | None = None, area: Area | None = None, day: str | None = None) -> bool:
        """Return whether the caller may see what concerns this client, belongs to this area and is of this day.

        Each is left out where a thing has none.
        """
        if customer_id is not None and self.customer_ids is not None and customer_id not in self.customer_ids:
            return False
        if area is not None and self.permissions is not None and area.VIEW not in self.permissions:
            return False
        return day not in self.hidden_days


def areas_of(principal: Principal) -> Visibility:
    """Return what the principal may see of a client, and a day, that have been checked: only areas are left to ask."""
    return Visibility(principal.permissions if principal.is_coach else None)

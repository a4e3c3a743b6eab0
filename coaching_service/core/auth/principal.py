"""Who is asking: a coach or a client of one company, and by which credential."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Literal

from coaching_service.core.dates import local_date
from coaching_service.core.ids import ObjectId

Via = Literal["session", "apiKey", "mcp"]


@dataclass(frozen=True, slots=True)
class Company:
    """What handlers need to know of the company without another query.

    `load_unit` is `kg` or `lb`; `has_stored_loads`: loads are stored in it, so that it can no longer change.
    """

    id: ObjectId
    name: str
    timezone: str
    load_unit: str
    has_stored_loads: bool = False


@dataclass(frozen=True, slots=True)
class Principal:
    """The one a request is evaluated as.

    `permissions` are already narrowed by the credential's own restrictions; `customers_scope` is `all` or
    `assigned`; `credential_id` names the key or session (for audit and sign-out). `restricted`: an API key that holds
    less than its maker. `client`: `_id` and trainer of the client whom the request is about, when they were looked up
    together with the credential.
    """

    id: ObjectId
    company: Company
    role: Literal["OWNER", "EMPLOYEE", "CUSTOMER"]
    via: Via
    name: str
    email: str | None
    credential_id: ObjectId
    permissions: frozenset[str] = field(default_factory=frozenset)
    customers_scope: Literal["all", "assigned"] = "all"
    impersonated_by: ObjectId | None = None
    read_only: bool = False
    restricted: bool = False
    client: Mapping[str, Any] | None = field(default=None, compare=False)

    @property
    def is_coach(self) -> bool:
        """Whether this is a coach (owner or employee) and not a client."""
        return self.role != "CUSTOMER"

    def today(self, timezone: str | None = None) -> date:
        """Today's date where the client is: in `timezone`, else in the company's."""
        return local_date(datetime.now(UTC), timezone or self.company.timezone)

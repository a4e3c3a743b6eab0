"""The authenticated caller: a coach or a client of one company, and the credential used."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple

from coaching_service.core.dates import local_date
from coaching_service.core.ids import ObjectId

Via = Literal["session", "apiKey", "mcp"]


@dataclass(frozen=True, slots=True)
class Company:
    """The company's settings that every request needs.

    `load_unit` is `kg` or `lb`; `has_stored_loads`: loads may be stored in that unit; it may be false for a moment
    after that has become true. `is_converting`: the loads are being converted to the other unit; `loads_converted_at`:
    when the last conversion ended (UTC).
    `has_overrides`: the company has changed shared exercises.
    `sandbox_of` is the company whose sandbox this one is, if it is one. `is_suspended`: the operator has suspended the
    company, so this is not the company of a request, but of background work or the operator's. `holds_mail`: mail to
    others waits until the owner's e-mail address is confirmed.
    """

    id: ObjectId
    name: str
    timezone: str
    load_unit: str
    has_stored_loads: bool = False
    has_overrides: bool = True
    sandbox_of: ObjectId | None = None
    is_suspended: bool = False
    holds_mail: bool = False
    is_converting: bool = False
    loads_converted_at: datetime | None = None

    @property
    def is_sandbox(self) -> bool:
        """Whether no user can sign in, and mail is stored instead of sent."""
        return self.sandbox_of is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """The identity and rights a request is evaluated with.

    `permissions` are already narrowed by the restrictions of the credential; `customers_scope` is `all` or `assigned`;
    `credential_id` identifies the key or session. `restricted`: an API key with fewer rights than the coach who
    created it. `may_read` and `may_reach_out` restrict assistants: reading, and sending mail and messages or changing
    several clients at once. `may_confirm`: an assistant may confirm calls itself, within limits. `mcp_only`: the
    key is refused over REST. `application` is the
    name of the OAuth application of an assistant. `only_customer_id` and `tool_groups` are what the address of an
    assistant is narrowed to: one client, groups of tools. `timezone` and `own_load_unit` are known of a client; else
    the company's apply.
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
    may_read: bool = True
    may_reach_out: bool = True
    may_confirm: bool = False
    mcp_only: bool = False
    application: str | None = None
    only_customer_id: ObjectId | None = None
    tool_groups: frozenset[str] | None = None
    timezone: str | None = None
    own_load_unit: str | None = None

    @property
    def load_unit(self) -> str:
        """Return the unit in which pages and tools show and take loads: the client's, else the company's."""
        return self.own_load_unit or self.company.load_unit

    @property
    def is_coach(self) -> bool:
        """Whether the caller is a coach (owner or employee)."""
        return self.role != "CUSTOMER"

    def today(self, timezone: str | None = None) -> date:
        """Return today's date in `timezone`, by default the client's, else the company's."""
        return local_date(datetime.now(UTC), timezone or self.timezone or self.company.timezone)


class KeyHolder(NamedTuple):
    """The coach of an API key with the key's restrictions, and when it expires (UTC), if it does."""

    principal: Principal
    expires_at: datetime | None

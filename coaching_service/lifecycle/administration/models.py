"""What the operator reads: the shape of `coaching-service admin ... --json`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.ids import ObjectId

CompanyState = Literal["active", "suspended"]


class CoachSummary(TypedDict):
    """A coach. `role` is OWNER or EMPLOYEE."""

    id: ObjectId
    name: str
    email: str
    role: str


class CompanyFigures(TypedDict):
    """A company as the operator sees it.

    `owner` is None for a company without one. `storage` is the number and the bytes of its files. `suspendedAt` and
    `reason` are None while it is active. Only a single company has `coaches`, `timezone` and `jobs`, the number of
    jobs in the queue.
    """

    id: ObjectId
    name: str
    state: CompanyState
    suspendedAt: datetime | None
    reason: str | None
    createdAt: datetime
    owner: CoachSummary | None
    activeClients: int
    archivedClients: int
    files: int
    bytes: int
    timezone: NotRequired[str]
    coaches: NotRequired[list[CoachSummary]]
    jobs: NotRequired[int]

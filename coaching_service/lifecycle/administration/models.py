"""What the operator reads: the shape of `coaching-service admin ... --json`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypedDict

from coaching_service.core.audit import OperatorAction
from coaching_service.core.database.file_totals import StorageUsage
from coaching_service.core.ids import ObjectId

CompanyState = Literal["active", "suspended"]


class BackupRecord(OperatorAction):
    """A backup that succeeded; `moment` is the time that it shows, `bytes` the size of the documents."""

    moment: str
    documents: int
    bytes: int


class CompanyUsage(StorageUsage):
    """A company with the number and the bytes of its files, and how much it may store; 0: no limit."""

    id: ObjectId
    name: str


class Person(TypedDict):
    """A coach or client who signs in by an e-mail address.

    `role` is OWNER, EMPLOYEE or CUSTOMER; `sessions` is the number of sign-in sessions that have not ended.
    """

    id: ObjectId
    role: str
    name: str
    email: str
    companyId: ObjectId
    companyName: str
    companyState: CompanyState
    sessions: int


JobState = Literal["due", "waiting", "running", "failing", "paused"]


class JobSummary(TypedDict):
    """A job in the queue. `attempts` failed or were interrupted; `dueAt` is the end of the lease of a running one."""

    id: ObjectId
    kind: str
    state: JobState
    companyId: ObjectId | None
    clientId: ObjectId | None
    dueAt: datetime
    attempts: int
    createdAt: datetime


class MailSummary(TypedDict):
    """A mail that was not sent. `failed`: it is not tried again by itself; `retrying`: it is, at `dueAt`.

    `to` and `subject` are None if its master key is missing.
    """

    id: ObjectId
    state: Literal["failed", "retrying"]
    companyId: ObjectId | None
    clientId: ObjectId | None
    to: str | None
    subject: str | None
    reason: str
    tries: int
    dueAt: datetime | None


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

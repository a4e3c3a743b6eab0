"""The response to a request whose work continues after it."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.ids import ObjectId


@dataclass(frozen=True)
class Accepted:
    """Work that has been queued: its job, as interfaces return it with the status 202."""

    job_id: ObjectId

    def to_response(self) -> dict[str, ObjectId]:
        """Return the body of the response."""
        return {"jobId": self.job_id}

"""Background jobs of a company over REST."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.support.client import CoachClient, Reply
from tests.support.service_process import until
from tests.support.training import Json


async def ended_job(coach: CoachClient, job_id: str, step: Callable[[], Awaitable[object]] | None = None) -> Json:
    """A job once it has ended; `step` runs before each look at it, next to the jobs that the service runs."""

    async def current() -> Json | None:
        if step is not None:
            await step()
        job: Json = (await coach.get(f"/coach/jobs/{job_id}")).ok()
        return None if job["status"] in ("queued", "running") else job

    job = await until(current, "the job has ended", 600)
    assert job is not None
    return job


async def finished(coach: CoachClient, accepted: Reply) -> Json:
    """The job of a response, once it has ended."""
    return await ended_job(coach, accepted.ok(202)["jobId"])

"""The sessions of a file between two steps of its import, in memory: reading it again takes longer than a step."""

from __future__ import annotations

import asyncio

from coaching_service.core.ids import ObjectId
from coaching_service.integrations.history_import._reading import FileContent

_LONGEST_SECONDS = 60.0
_contents: dict[ObjectId, tuple[FileContent, asyncio.TimerHandle]] = {}


def suspend(job_id: ObjectId, content: FileContent) -> None:
    """Keep the content of a file for the next step of its job, for at most a minute, in place of any other content."""
    for other in list(_contents):
        resume(other)
    _contents[job_id] = content, asyncio.get_running_loop().call_later(_LONGEST_SECONDS, resume, job_id)


def resume(job_id: ObjectId) -> FileContent | None:
    """Return the content of the file of a job, if this process has it, and forget it."""
    content, timer = _contents.pop(job_id, (None, None))
    if timer is not None:
        timer.cancel()
    return content

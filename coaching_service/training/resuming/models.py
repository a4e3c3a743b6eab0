"""Results of returns from absences."""

from __future__ import annotations

from typing import Literal

from coaching_service.people.availability.models import Availability
from coaching_service.training.schedule.models import ClearedSchedule

# What becomes of what was planned in an absence: it is moved, with everything later, or removed.
ResumeMode = Literal["shift", "drop"]


class ResumedSchedule(ClearedSchedule):
    """The result of a return from an absence, with the absence as it is now."""

    availability: Availability

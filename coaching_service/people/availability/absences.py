"""On which days clients do not train, free of the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from coaching_service.people.availability.models import Availability, AvailabilityKind

LIMITED = "limited"


class Absences:
    """The days of one client's periods of `away`, `injured` and `ill`."""

    def __init__(self, periods: Iterable[Availability]) -> None:
        self.periods: Sequence[Availability] = [period for period in periods if is_absence(period)]

    def find(self, day: str | date) -> Availability | None:
        """Return the period that has a day (`YYYY-MM-DD`), or None."""
        return next((period for period in self.periods if includes(period, str(day))), None)

    def kind_on(self, day: str) -> AvailabilityKind | None:
        """Return why the client does not train on a day (`YYYY-MM-DD`); None if the client does."""
        period = self.find(day)
        return None if period is None else period["kind"]

    def has_any(self, first: date, last: date) -> bool:
        """Return whether the client does not train on a day from `first` to `last`."""
        return any(
            period["from"] <= str(last) and (period["until"] is None or str(first) <= period["until"])
            for period in self.periods
        )

    def __contains__(self, day: object) -> bool:
        return self.find(str(day)) is not None

    def __bool__(self) -> bool:
        return bool(self.periods)


NO_ABSENCES = Absences(())


def is_absence(period: Availability) -> bool:
    """Return whether the client does not train in a period."""
    return period["kind"] != LIMITED


def includes(period: Availability, day: str) -> bool:
    """Return whether a period has a day (`YYYY-MM-DD`)."""
    return period["from"] <= day and (period["until"] is None or day <= period["until"])

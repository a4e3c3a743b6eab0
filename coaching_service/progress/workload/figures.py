"""The figures of training load: periods, and the ratio of acute to chronic load."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import accumulate

from coaching_service.core.database.documents import Document

ACUTE_DAYS, CHRONIC_DAYS = 7, 28
SESSION_LOAD, VOLUME_LOAD = "sessionLoad", "volumeLoad"


def session_load(session: Document) -> float | None:
    """Session rating of perceived exertion x minutes (Foster et al. 2001), None unless both were noted."""
    rpe, minutes = session["sessionRpe"], session["durationMinutes"]
    return None if rpe is None or minutes is None else rpe * minutes


def period_start(day: date, group_by: str) -> date:
    """The first day of the period a day is in: the day, its Monday, or the first of its month."""
    if group_by == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if group_by == "month" else day


def period_starts(first: date, last: date, group_by: str) -> list[date]:
    """The first days of every period that has a day from `first` to `last`."""
    days = map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))
    return list(dict.fromkeys(period_start(day, group_by) for day in days))


class LoadCurve:
    """Training load day by day, and the acute:chronic ratio on any of them.

    `sessions`: `{date, volumeLoad, sessionRpe, durationMinutes}` of every session from `begin` on.
    """

    def __init__(self, sessions: Iterable[Document], begin: date, end: date) -> None:
        self._begin = begin
        days = (end - begin).days + 1
        volume, load, unrated, count = [0] * days, [0] * days, [0] * days, [0] * days
        for session in sessions:
            at = (date.fromisoformat(session["date"]) - begin).days
            rated = session_load(session)
            volume[at] += _whole(session["volumeLoad"])
            load[at] += _whole(rated or 0)
            unrated[at] += rated is None
            count[at] += 1
        # How much up to a day: of a window it is a difference.
        self._volume, self._load, self._unrated, self._count = (
            list(accumulate(figures, initial=0)) for figures in (volume, load, unrated, count)
        )

    def ratio(self, day: date, first_session: date | None) -> tuple[float | None, str]:
        """The mean daily load of the 7 days up to `day` over that of 28 (Hulin et al. 2014), and of which load.

        Of session load if every session in the 28 days was rated, else of volume load. None in the first 28 days
        since the first session, or when the chronic mean is 0.
        """
        end = (day - self._begin).days + 1
        month, week = max(0, end - CHRONIC_DAYS), max(0, end - ACUTE_DAYS)
        rated = self._count[end] > self._count[month] and self._unrated[end] == self._unrated[month]
        curve, of = (self._load, SESSION_LOAD) if rated else (self._volume, VOLUME_LOAD)
        chronic = curve[end] - curve[month]
        if first_session is None or (day - first_session).days < CHRONIC_DAYS or not chronic:
            return None, of
        return round((curve[end] - curve[week]) * (CHRONIC_DAYS // ACUTE_DAYS) / chronic, 2), of


def _whole(load: float) -> int:
    """A load in millionths: sums of whole numbers are exact, so that a difference of sums is."""
    return round(load * 1_000_000)

"""When a notification is sent: not in the quiet hours of its recipient, and not when it is too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from coaching_service.core.dates import at_local_time, zone_of
from coaching_service.people.notification_settings.models import Kind, NotificationSettings

MAX_LATENESS = timedelta(hours=2)
# What has no time of its own is sent as long as it is unread or undecided.
_UNTIMED: tuple[Kind, ...] = ("messages", "proposals")


def find_end_of_quiet(moment: datetime, settings: NotificationSettings, timezone: str) -> datetime | None:
    """Return when the quiet hours end in which `moment` (UTC) is, or None if it is in none."""
    begin, end = settings["quietFrom"], settings["quietTo"]
    if begin is None or end is None or begin == end:
        return None
    local = moment.replace(tzinfo=UTC).astimezone(zone_of(timezone))
    clock, day = f"{local:%H:%M}", local.date()
    is_after_begin, is_before_end = clock >= begin, clock < end
    is_over_night = begin > end
    if not (is_after_begin or is_before_end if is_over_night else is_after_begin and is_before_end):
        return None
    ends_at = at_local_time(day + timedelta(days=1) if is_over_night and is_after_begin else day, end, timezone)
    return ends_at if ends_at > moment else None  # the clocks were set back after the end


def find_time(
    kind: Kind,
    due_at: datetime,
    valid_until: datetime | None,
    at: datetime,
    settings: NotificationSettings,
    timezone: str,
) -> datetime | None:
    """Return when a notification that is due is sent: now (`at`), or at the end of the quiet hours.

    None: not at all, because it is more than two hours late, or pointless by then.
    """
    planned = find_end_of_quiet(due_at, settings, timezone) or due_at
    if kind not in _UNTIMED and at - planned > MAX_LATENESS:
        return None
    moment = max(planned, at)
    moment = find_end_of_quiet(moment, settings, timezone) or moment
    return None if valid_until is not None and moment >= valid_until else moment

"""Reading and changing the settings of a user's notifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from coaching_service.people.notification_settings.models import (
    Channel,
    Channels,
    Kind,
    NotificationSettings,
    SomeSettings,
)

_ON: Channels = {"mail": True, "push": True}
_DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys(get_args(Kind), _ON),
    "showDetails": False,
    "workoutTime": None,
    "digestHour": 7,
    "quietFrom": None,
    "quietTo": None,
}


def complete(stored: SomeSettings | None) -> NotificationSettings:
    """Return all settings of a user, of whom only some may be stored."""
    return merge(_DEFAULTS, stored or {})


def merge(settings: Mapping[str, object], change: Mapping[str, object]) -> NotificationSettings:
    """Return settings after a change, some of them; a channel that it does not name stays as it is."""
    merged: dict[str, object] = {**settings, **change}
    channels = {kind: {**_read(settings, kind), **_read(merged, kind)} for kind in get_args(Kind)}
    return cast("NotificationSettings", merged | channels)


def _read(settings: Mapping[str, object], kind: Kind) -> Channels:
    """Return the channels of a kind; a change may have only one of them."""
    value = settings[kind]
    return {"mail": value, "push": value} if isinstance(value, bool) else cast("Channels", value)


def find_channels(settings: NotificationSettings, kind: Kind) -> list[Channel]:
    """Return the ways by which a user wants a kind of notification."""
    wanted: Mapping[str, object] = _read(settings, kind)
    return [channel for channel in get_args(Channel) if wanted[channel]]

"""Reading and changing the settings of a user's notifications."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, TypedDict, cast, get_args

from marshmallow import fields

from coaching_service.core.fields import Description, Partial, input_of, output_of
from coaching_service.core.validation import Integer, Switches, TimeOfDay

# --- The settings of a user's notifications, as they are sent, stored and returned ------------------------------------


Kind = Literal["messages", "reminders", "workouts", "checkIns", "digest", "proposals"]
Channel = Literal["mail", "push"]


class Channels(TypedDict):
    """By which ways a kind of notification is sent."""

    mail: Annotated[bool, Description("By mail.")]
    push: Annotated[bool, Description("To the devices on which the user has turned notifications on.")]


_ChannelsChange: TypeAlias = Partial[Channels]
_INPUT = input_of(_ChannelsChange, name="NotificationChannelsInput", description="By which ways to send them.")
_OUTPUT = output_of(Channels, name="NotificationChannels")

# Documents of earlier versions have one boolean.
_Channels: TypeAlias = Annotated[Channels | bool, Switches(_INPUT), fields.Nested(_OUTPUT)]


class NotificationSettings(TypedDict):
    """Which notifications a user gets, how and when. A boolean for a kind is taken for all its channels."""

    messages: Annotated[
        _Channels,
        Description(
            "Unread messages. A coach gets mail about them only if `notifications.messages` of GET /coach/account is "
            "true, too."
        ),
    ]
    reminders: Annotated[_Channels, Description("Reminders in a client's plan, at their time.")]
    workouts: Annotated[_Channels, Description("The workout of the day, to clients at `workoutTime`.")]
    checkIns: Annotated[_Channels, Description("Check-ins of the day, to clients.")]
    digest: Annotated[_Channels, Description("Which clients need attention, to coaches at `digestHour`.")]
    proposals: Annotated[_Channels, Description("What assistants propose, to coaches.")]
    showDetails: Annotated[
        bool, Description("Whether notifications on devices show names of people and workouts. A new user: false.")
    ]
    workoutTime: Annotated[
        str | None, TimeOfDay(), Description("When the workout of the day is announced, local time; null: never.")
    ]
    digestHour: Annotated[
        int,
        Integer(minimum=0, maximum=23),
        Description("The local hour of the digest, on weekdays. A new coach has 7."),
    ]
    quietFrom: Annotated[
        str | None,
        TimeOfDay(),
        Description("From when to when (`quietTo`) nothing is sent, local time: it is sent at the end. null: always."),
    ]
    quietTo: Annotated[str | None, TimeOfDay(), Description("When the quiet hours end; null: there are none.")]


# What is stored, and what a request changes: settings that are left out stay as they are.
SomeSettings: TypeAlias = Partial[NotificationSettings]
SETTINGS_INPUT = input_of(
    SomeSettings,
    name="NotificationSettingsInput",
    description="Which notifications to get, how and when; settings that are left out stay as they are.",
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

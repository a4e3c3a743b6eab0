"""How many messages are sent to one push service at the same time: few while it does not respond."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

PLACES = 64  # of this process, for all push services
_OF_ONE = 40
_OF_ONE_WITHOUT_RESPONSE = 2
_MAX_REMEMBERED = 1000


class Pace:
    """The messages that are being sent, by the host of their push service.

    A push service that hangs keeps a few places, so that the others are not held up.
    """

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._without_response: set[str] = set()

    def enter(self, host: str) -> timedelta | None:
        """Take a place, and return None; without a free one return after which time to ask again."""
        is_slow = host in self._without_response
        if self._running[host] >= (_OF_ONE_WITHOUT_RESPONSE if is_slow else _OF_ONE):
            return timedelta(seconds=5 if is_slow else 0.2)
        self._running[host] += 1
        return None

    def leave(self, host: str, *, responded: bool) -> None:
        """Leave a place. `responded`: the push service has answered, with any status."""
        self._running[host] -= 1
        if not self._running[host]:
            del self._running[host]
        if responded:
            self._without_response.discard(host)
        elif len(self._without_response) < _MAX_REMEMBERED:
            self._without_response.add(host)

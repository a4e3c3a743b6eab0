"""The day of tests whose results would depend on the day of the week, or on midnight: `wednesday` moves the clock to it.

The database removes what has expired by its own clock, so the day is in the future.
"""

from __future__ import annotations

from datetime import date

TODAY = date(2031, 3, 5)  # a Wednesday
NOON = f"{TODAY}T12:00:00+00:00"

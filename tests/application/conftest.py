"""An operator for the tests of commands."""

from __future__ import annotations

from tests.support.commands import operator, prepared, prepared_database

__all__ = ["operator", "prepared", "prepared_database"]

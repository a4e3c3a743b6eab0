"""All companies, for the operator of the service."""

from __future__ import annotations

from coaching_service.people.account import store

iterate = store.iterate


find = store.find


find_existing = store.find_existing

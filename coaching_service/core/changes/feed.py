"""The activity feed: the entries that changes have for a client's feed, and for the feed of all clients."""

from __future__ import annotations

from coaching_service.core.changes.store import (
    COMPANY_FEED_ORDER,
    correct_feed_entry,
    find_company_feed,
    find_feed_page,
)

__all__ = ["COMPANY_FEED_ORDER", "correct_feed_entry", "find_company_feed", "find_feed_page"]

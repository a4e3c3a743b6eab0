"""Checks that the stored secrets can be decrypted with the configured master keys."""

from __future__ import annotations

from collections.abc import AsyncIterator

from coaching_service.core import idempotency
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.webhooks import service as webhooks

_ADVICE = "Add the master key that they were encrypted with to SECRET_KEYS, after the newest"


async def find_unreadable_keys(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find API keys that no master key opens."""
    advice = f"{_ADVICE}; if it is lost, revoke these keys and create new ones"
    for finding in await _count(api_keys.iterate_unreadable(services), "API keys that no master key opens", advice):
        yield finding


async def find_unreadable_webhooks(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find webhooks with a secret that no master key opens."""
    advice = f"{_ADVICE}; if it is lost, delete these webhooks and create new ones"
    for finding in await _count(webhooks.iterate_unreadable(services), "Webhooks that no master key opens", advice):
        yield finding


async def find_unreadable_responses(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find stored responses that no master key opens."""
    advice = f"{_ADVICE}, or wait: they expire after 24 hours, and until then repeated requests get 409"
    unreadable = idempotency.iterate_unreadable(services)
    for finding in await _count(unreadable, "Stored responses that no master key opens", advice):
        yield finding


async def _count(identifiers: AsyncIterator[ObjectId], problem: str, advice: str) -> list[Finding]:
    occurrences = Occurrences()
    async for identifier in identifiers:
        occurrences.add(identifier)
    return occurrences.finding(problem, advice)


CHECKS = (
    Check("secrets-keys", "API keys can be read", find_unreadable_keys),
    Check("secrets-webhooks", "Webhooks can be read", find_unreadable_webhooks),
    Check("secrets-responses", "Stored responses can be read", find_unreadable_responses),
)

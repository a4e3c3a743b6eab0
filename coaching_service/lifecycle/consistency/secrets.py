"""Checks that the stored secrets can be decrypted with the configured master keys."""

from __future__ import annotations

from coaching_service.core import idempotency
from coaching_service.core.database.checks import check_of
from coaching_service.people import api_keys
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import service as push
from coaching_service.people.second_factor import service as second_factor
from coaching_service.people.webhooks import service as webhooks

_ADVICE = "Add the master key that they were encrypted with to SECRET_KEYS, after the newest"

CHECKS = (
    check_of(
        "secrets-keys",
        "API keys can be read",
        api_keys.iterate_unreadable,
        "API keys that no master key opens",
        f"{_ADVICE}; if it is lost, revoke these keys and create new ones",
    ),
    check_of(
        "secrets-webhooks",
        "Webhooks can be read",
        webhooks.iterate_unreadable,
        "Webhooks that no master key opens",
        f"{_ADVICE}; if it is lost, delete these webhooks and create new ones",
    ),
    check_of(
        "secrets-push-keys",
        "Keys of Web Push can be read",
        push_keys.iterate_unreadable,
        "Keys of Web Push that no master key opens",
        f"{_ADVICE}; if it is lost, run: coaching-service admin push rotate-key",
    ),
    check_of(
        "secrets-push",
        "Addresses of devices can be read",
        push.iterate_unreadable,
        "Devices whose address no master key opens",
        f"{_ADVICE}; if it is lost, they subscribe again when they open a page",
    ),
    check_of(
        "secrets-second-factors",
        "Second factors can be read",
        second_factor.iterate_unreadable,
        "Authenticator applications whose secret no master key opens",
        f"{_ADVICE}; if it is lost, run for each user: coaching-service admin reset-second-factor",
    ),
    check_of(
        "secrets-responses",
        "Stored responses can be read",
        idempotency.iterate_unreadable,
        "Stored responses that no master key opens",
        f"{_ADVICE}, or wait: they expire after 24 hours, and until then repeated requests get 409",
    ),
)

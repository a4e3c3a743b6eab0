"""Client library of the coaching service.

`connect` makes a client with retries and idempotency keys, `ok` returns what an operation responds or raises
`RequestFailed`, `walk` and `pages` read whole lists, and `verify_webhook` checks a message of a webhook. The functions
of `coaching_service_client.api` and the classes of `coaching_service_client.models` are generated from the API
document.
"""

from coaching_service_client.client import AuthenticatedClient, Client
from coaching_service_client.connection import connect
from coaching_service_client.errors import UnexpectedStatus
from coaching_service_client.lists import pages, pages_async, walk, walk_async
from coaching_service_client.results import RequestFailed, ok
from coaching_service_client.retries import Retries
from coaching_service_client.webhooks import WebhookEvent, WebhookVerificationError, verify_webhook

__all__ = (
    "AuthenticatedClient",
    "Client",
    "RequestFailed",
    "Retries",
    "UnexpectedStatus",
    "WebhookEvent",
    "WebhookVerificationError",
    "connect",
    "ok",
    "pages",
    "pages_async",
    "verify_webhook",
    "walk",
    "walk_async",
)

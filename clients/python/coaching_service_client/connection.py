"""Clients with a credential, retries and idempotency keys."""

from __future__ import annotations

import ssl

import httpx

from coaching_service_client.client import AuthenticatedClient
from coaching_service_client.retries import Retries, RetryingAsyncTransport, RetryingTransport


def connect(
    base_url: str,
    *,
    api_key: str | None = None,
    access_token: str | None = None,
    retries: Retries | None = None,
    timeout: float = 40.0,
    verify: ssl.SSLContext | bool = True,
    proxy: str | None = None,
) -> AuthenticatedClient:
    """Return a client of the service at `base_url`, such as `https://coaching.example.com`.

    It sends either the `api_key` or the `access_token` of a session. `retries` says how often and how long requests are
    repeated; `timeout` is the longest time in seconds that one attempt waits for the service. `proxy` is the address of
    a proxy for the connections; variables of the environment are not read. Raises ValueError unless exactly one
    credential is given.

    The functions of `coaching_service_client.api` take it as `client`. As a context manager (`with`, or `async with`
    for the functions named `asyncio`) it closes its connections.
    """
    if (api_key is None) == (access_token is None):
        raise ValueError("give either an api_key or an access_token")
    chosen = retries or Retries()
    address = base_url.rstrip("/")
    client = AuthenticatedClient(
        address,
        api_key or access_token or "",
        prefix="" if api_key else "Bearer",
        auth_header_name="X-API-Key" if api_key else "Authorization",
        raise_on_unexpected_status=True,
    )
    headers = {client.auth_header_name: f"{client.prefix} {client.token}".strip()}
    prefix = httpx.URL(address).path.rstrip("/")
    client.set_httpx_client(
        httpx.Client(
            base_url=address,
            headers=headers,
            timeout=timeout,
            transport=RetryingTransport(httpx.HTTPTransport(verify=verify, proxy=proxy), chosen, prefix),
        )
    )
    return client.set_async_httpx_client(
        httpx.AsyncClient(
            base_url=address,
            headers=headers,
            timeout=timeout,
            transport=RetryingAsyncTransport(httpx.AsyncHTTPTransport(verify=verify, proxy=proxy), chosen, prefix),
        )
    )

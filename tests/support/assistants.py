"""An assistant that a coach has authorized, without the pages of the browser."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.people import assistants
from coaching_service.people.assistants import SCOPES, ApplicationGrant, Grant, GrantRequest, Scope, TokenPair


@dataclass
class AuthorizedAssistant:
    """A grant as the coach sees it, and the tokens of the assistant."""

    grant: Any
    tokens: TokenPair


def pkce() -> tuple[str, str]:
    """A verifier and its S256 challenge."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


async def _list(ctx: Context) -> list[Grant | ApplicationGrant]:
    return [*await assistants.list_assistants(ctx), *await assistants.list_applications(ctx)]


async def authorize_assistant(
    ctx: Context,
    name: str = "Claude",
    scopes: Sequence[Scope] = SCOPES,
    *,
    confirm_in_chat: bool = False,
    rest_scopes: tuple[str, ...] = (),
    client_id: str = "a-client",
) -> AuthorizedAssistant:
    """Authorize an assistant, or an application over REST, as the coach of `ctx`; exchange the code for tokens."""
    verifier, challenge = pkce()
    resource = f"{ctx.services.base_url}/mcp"
    request = GrantRequest(
        *(client_id, name, "https://claude.ai/callback", "claude.ai", challenge, resource),
        redirect_uri_given=False,
        rest_scopes=rest_scopes,
    )
    before = {grant["_id"] for grant in await _list(ctx)}
    code = await assistants.create_grant(ctx, request, scopes, confirm_in_chat=confirm_in_chat, rest_scopes=rest_scopes)
    tokens = await assistants.exchange_code(ctx.services, code, client_id, verifier, None, refreshable=True)
    (grant,) = [grant for grant in await _list(ctx) if grant["_id"] not in before]
    return AuthorizedAssistant(grant, tokens)

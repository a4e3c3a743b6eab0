"""What clients discover: where the resource is, and what its authorization server can do."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from coaching_service.oauth.clients import GRANT_TYPES, METHODS, SCOPE


def resource_of(base_url: str) -> str:
    """The resource that tokens are for, as it is named in them."""
    return f"{base_url}/mcp"


def names_resource(base_url: str, given: str) -> bool:
    """Whether a client means our resource: its address or the service's, with or without a last slash."""
    return _canonical(given) in {_canonical(base_url), _canonical(resource_of(base_url))}


def _canonical(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.query or parts.fragment:
        return None
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def protected_resource(base_url: str) -> dict[str, Any]:
    """The document of RFC 9728."""
    return ProtectedResourceMetadata.model_validate(
        {
            "resource": resource_of(base_url),
            "authorization_servers": [base_url],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
            "resource_name": "Coaching service",
        }
    ).model_dump(mode="json", exclude_none=True)


def authorization_server(base_url: str) -> dict[str, Any]:
    """The document of RFC 8414."""
    return OAuthMetadata.model_validate(
        {
            "issuer": base_url,
            "authorization_endpoint": f"{base_url}/oauth/authorize",
            "token_endpoint": f"{base_url}/oauth/token",
            "registration_endpoint": f"{base_url}/oauth/register",
            "revocation_endpoint": f"{base_url}/oauth/revoke",
            "scopes_supported": [SCOPE],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": list(GRANT_TYPES),
            "token_endpoint_auth_methods_supported": list(METHODS),
            "revocation_endpoint_auth_methods_supported": list(METHODS),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
    ).model_dump(mode="json", exclude_none=True)

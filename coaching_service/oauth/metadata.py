"""The discovery documents: protected resource (RFC 9728) and authorization server (RFC 8414) metadata."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from coaching_service.oauth.clients import GRANT_TYPES, METHODS
from coaching_service.oauth.scopes import SUPPORTED


def resource_of(base_url: str) -> str:
    """Return the resource identifier (audience) of access tokens."""
    return f"{base_url}/mcp"


def is_our_resource(base_url: str, resource: str) -> bool:
    """Return whether `resource` is the URL of the MCP endpoint or of the service, with or without a trailing slash.

    The endpoint may be narrowed by a query: the access token is the same.
    """
    return _canonical(resource) in {_canonical(base_url), _canonical(resource_of(base_url))}


def _canonical(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.fragment:
        return None
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def protected_resource(base_url: str) -> dict[str, Any]:
    """Return the protected resource metadata."""
    return {
        "resource": resource_of(base_url),
        "authorization_servers": [base_url],
        "scopes_supported": SUPPORTED,
        "bearer_methods_supported": ["header"],
        "resource_name": "Coaching service",
    }


def authorization_server(base_url: str, *, documents: bool) -> dict[str, Any]:
    """Return the authorization server metadata. `documents`: clients may identify themselves by a document."""
    return {
        "issuer": base_url,
        "authorization_endpoint": f"{base_url}/oauth/authorize",
        "token_endpoint": f"{base_url}/oauth/token",
        "registration_endpoint": f"{base_url}/oauth/register",
        "revocation_endpoint": f"{base_url}/oauth/revoke",
        "scopes_supported": SUPPORTED,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(GRANT_TYPES),
        "token_endpoint_auth_methods_supported": list(METHODS),
        "revocation_endpoint_auth_methods_supported": list(METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": documents,
    }

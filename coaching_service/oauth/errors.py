"""OAuth errors, in the shape of RFC 6749."""

from __future__ import annotations

from typing import TypedDict


class OAuthErrorBody(TypedDict):
    """The JSON object of a response to a rejected request."""

    error: str
    error_description: str


class OAuthError(Exception):
    """A rejected request: `error` is an OAuth error code, `description` a sentence for developers."""

    def __init__(self, error: str, description: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(description)
        self.error, self.description, self.status, self.headers = error, description, status, headers or {}

    def body(self) -> OAuthErrorBody:
        """Return the JSON object of the response."""
        return {"error": self.error, "error_description": self.description}


def invalid_request(description: str) -> OAuthError:
    """Return the error for a parameter that is missing, malformed or repeated."""
    return OAuthError("invalid_request", description)


def invalid_client(*, challenge: bool) -> OAuthError:
    """Return the error for an unknown client or a wrong secret, after which clients register again."""
    headers = {"WWW-Authenticate": 'Basic realm="oauth"'} if challenge else {}
    return OAuthError("invalid_client", "The client is unknown or its secret is wrong: register again", 401, headers)

"""The failures of OAuth, in its own shape."""

from __future__ import annotations

from typing import Any


class OAuthError(Exception):
    """A refused request: `error` is one of OAuth's words, `about` a sentence for developers."""

    def __init__(self, error: str, about: str, status: int = 400, headers: dict[str, str] | None = None) -> None:
        super().__init__(about)
        self.error, self.about, self.status, self.headers = error, about, status, headers or {}

    def body(self) -> dict[str, Any]:
        """The JSON object a client receives."""
        return {"error": self.error, "error_description": self.about}


def invalid_request(about: str) -> OAuthError:
    """Something is missing, malformed, or sent twice."""
    return OAuthError("invalid_request", about)


def invalid_client(*, challenge: bool) -> OAuthError:
    """Nobody registered by that identifier, or with another secret: the client registers again."""
    headers = {"WWW-Authenticate": 'Basic realm="oauth"'} if challenge else {}
    return OAuthError("invalid_client", "The client is unknown or its secret is wrong: register again", 401, headers)

"""The errors of the service: each class carries its status, and this file alone knows their JSON shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class ServiceError(Exception):
    """A failure the caller is told about.

    `message` is a sentence for people, or a list of them. `headers` go onto a REST answer.
    """

    status: ClassVar[int] = 500
    reason: ClassVar[str] = "Internal Server Error"

    def __init__(self, message: str | list[str], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON object a REST caller receives."""
        return {"statusCode": self.status, "message": self.message, "error": self.reason}


class BadRequest(ServiceError):
    """What was sent does not match the required fields or formats."""

    status, reason = 400, "Bad Request"


class Unauthorized(ServiceError):
    """No credential, a bearer or an API key that is not valid, or a refused sign-in."""

    status, reason = 401, "Unauthorized"

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        super().__init__("Unauthorized", headers)

    def body(self) -> dict[str, Any]:
        """The specification's shape: no `error` beside it."""
        return {"statusCode": 401, "message": "Unauthorized"}


class InvalidApiKey(ServiceError):
    """An `X-API-Key` that is unknown, deleted or expired."""

    status, reason = 401, "Unauthorized"

    def __init__(self) -> None:
        super().__init__("Invalid API key")

    def body(self) -> dict[str, Any]:
        """The API-key middleware's shape: only a message."""
        return {"message": self.message}


class SignInRejected(ServiceError):
    """A sign-in, refresh or token that is not accepted."""

    status, reason = 401, "Unauthorized"


class Forbidden(ServiceError):
    """The caller is known and may not do this."""

    status, reason = 403, "Forbidden"


class NotFound(ServiceError):
    """Unknown, deleted, or another company's: the three are told apart by nobody."""

    status, reason = 404, "Not Found"


class MethodNotAllowed(ServiceError):
    """A known path, another method."""

    status, reason = 405, "Method Not Allowed"


class RequestTimeout(ServiceError):
    """The body did not arrive in time."""

    status, reason = 408, "Request Timeout"


class Conflict(ServiceError):
    """The document has moved on, or the operation collides with another."""

    status, reason = 409, "Conflict"


class TooLarge(ServiceError):
    """A body over its limit."""

    status, reason = 413, "Payload Too Large"


class UnsupportedMediaType(ServiceError):
    """A body of a content type this operation does not read."""

    status, reason = 415, "Unsupported Media Type"


class TooManyRequests(ServiceError):
    """Slow down; `Retry-After` says for how long."""

    status, reason = 429, "Too Many Requests"


class InternalError(ServiceError):
    """A defect. What went wrong is in the log under the request id, never in the answer."""

    def __init__(self) -> None:
        super().__init__("Internal server error")


class Unavailable(ServiceError):
    """The database cannot be reached; a read may be retried."""

    status, reason = 503, "Service Unavailable"


class LegacyFailure(ServiceError):
    """One of the four documented bad requests that answer 500 with `{code, message}`; permanent, nothing is written."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def body(self) -> dict[str, Any]:
        """The legacy shape: `{code, message}`."""
        return {"code": self.code, "message": self.message}


class ClientDisconnected(Exception):
    """Whoever asked is gone: there is nobody to tell."""


def not_found(what: str) -> NotFound:
    """The error for an identifier that names nothing this caller can see, e.g. `not_found("Customer")`."""
    return NotFound(f"{what} not found")

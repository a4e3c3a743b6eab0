"""The errors of the service: each class has its status and code, and only this file knows their JSON shapes.

REST, MCP and the web application render errors by `code` and `details`; nothing matches on English text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NotRequired, TypedDict, TypeVar, cast

from coaching_service.core.ids import ObjectId

T = TypeVar("T")
D = TypeVar("D", bound=Mapping[str, object])
RETRY_SOON: Mapping[str, str] = {"Retry-After": "1"}  # in seconds


class FieldError(TypedDict):
    """What is wrong with one field of a request.

    `field` is its path (`exerciseSets.0.load`), `code` is stable and UPPER_SNAKE, `message` says what is expected.
    `_id`: the record that has the identifier in another system, if it is taken.
    """

    field: str
    code: str
    message: str
    _id: NotRequired[ObjectId]


class MovedDocument(TypedDict):
    """A document that has been changed since the change to undo."""

    kind: str
    _id: str


class ErrorBody(TypedDict, total=False):
    """The JSON object of a REST response to a failure; which fields it has depends on the error."""

    statusCode: int
    message: str | list[str]
    error: str
    code: str | None
    errors: Sequence[FieldError]
    permission: str
    scope: str
    _id: str
    documents: list[MovedDocument]
    challenge: str
    methods: list[str]
    docs: str
    publicKey: Mapping[str, object]


class ServiceError(Exception):
    """A failure that is reported to the caller.

    `message` is a sentence for people, or a list of them; an error that is always the same has it in its class. `code`
    is stable and UPPER_SNAKE; None where the specification fixes a shape without one. `details` are the facts behind
    the message, for interfaces that word it themselves; those in `shown` are fields of a REST response. `headers` are
    added to it.
    """

    status: ClassVar[int] = 500
    reason: ClassVar[str] = "Internal Server Error"
    default_code: ClassVar[str | None] = None
    default_message: ClassVar[str] = ""
    default_headers: ClassVar[Mapping[str, str]] = {}
    shown: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        message: str | list[str] = "",
        headers: Mapping[str, str] | None = None,
        *,
        code: str | None = None,
        **details: Any,
    ) -> None:
        self.message = message or self.default_message
        super().__init__(self.message)
        self.code = code or self.default_code
        self.headers = dict(self.default_headers if headers is None else headers)
        self.details = details

    def __str__(self) -> str:
        """Return the message in one line."""
        return self.message if isinstance(self.message, str) else "; ".join(self.message)

    def body(self) -> ErrorBody:
        """Return the JSON object of a REST response."""
        body: ErrorBody = {"statusCode": self.status, "message": self.message, "error": self.reason}
        if self.code:
            body["code"] = self.code
        shown = {name: self.details[name] for name in self.shown if self.details[name] is not None}
        return cast("ErrorBody", {**body, **shown})


class BadRequest(ServiceError):
    """The request does not match the required fields or formats."""

    status, reason = 400, "Bad Request"
    default_code: ClassVar[str | None] = "BAD_REQUEST"


class InvalidFields(BadRequest):
    """Fields of the request are invalid; `errors` has one entry for each.

    `message` replaces the list of their messages.
    """

    default_code = "INVALID_FIELDS"

    def __init__(self, errors: Sequence[FieldError], message: str | None = None) -> None:
        super().__init__(message or [f"{error['field']} {error['message']}".strip() for error in errors])
        self.errors = list(errors)

    def body(self) -> ErrorBody:
        """Return the common shape with the `errors`; `message` has a sentence for each."""
        return {**super().body(), "errors": self.errors}


class InvalidQueryType(BadRequest):
    """A query parameter is not the number or boolean that the specification requires: its shape has no code."""

    default_code = None


class Unauthorized(ServiceError):
    """The credential is missing, or the bearer token is not valid."""

    status, reason, default_message = 401, "Unauthorized", "Unauthorized"

    def body(self) -> ErrorBody:
        """Return the specification's shape, without `error`."""
        return {"statusCode": 401, "message": "Unauthorized"}


class InvalidApiKey(ServiceError):
    """The API key is unknown, deleted or expired."""

    status, reason, default_message = 401, "Unauthorized", "Invalid API key"

    def body(self) -> ErrorBody:
        """Return the specification's shape: only a message."""
        return {"message": self.message}


class SignInRejected(ServiceError):
    """A sign-in, refresh or token is not accepted."""

    status, reason, default_code = 401, "Unauthorized", "SIGN_IN_REJECTED"


class SecondFactorRequired(SignInRejected):
    """The password is right, and the user has a second factor: answer the challenge with POST /auth/second-factor."""

    default_code = "SECOND_FACTOR_REQUIRED"
    default_message = "The password is right; confirm the sign-in with a second factor"
    shown = ("challenge", "methods", "publicKey")

    def __init__(self, challenge: str, methods: list[str], public_key: Mapping[str, object] | None = None) -> None:
        """Create the error; `public_key` is what a browser needs to answer with a passkey, if the user has one."""
        super().__init__(challenge=challenge, methods=methods, publicKey=public_key)


class Forbidden(ServiceError):
    """The caller is known and lacks the permission."""

    status, reason, default_code = 403, "Forbidden", "FORBIDDEN"


class SecondFactorMissing(Forbidden):
    """The company requires a second factor, and the session began with the password alone."""

    default_code = "SECOND_FACTOR_REQUIRED"
    default_message = "Your company requires a second factor: set one up, or sign in again with it"


class KeyMcpOnly(Forbidden):
    """The API key was made for an assistant: it is good at /mcp only."""

    default_code = "KEY_MCP_ONLY"
    default_message = "This API key is for assistants: it is good at /mcp only"


class ScopeMissing(Forbidden):
    """The application has not the scope that `scope` names."""

    default_code = "SCOPE_MISSING"
    shown = ("scope",)

    def __init__(self, scope: str) -> None:
        super().__init__(f"The application has not the scope {scope}: ask the coach to allow it", scope=scope)


class ClientDeclined(Forbidden):
    """The client has turned off assistants, or applications."""

    default_code = "CLIENT_DECLINED"
    default_message = "This client does not allow it: they have turned off assistants, or applications"


class PermissionMissing(Forbidden):
    """The caller has not the permission that `permission` names."""

    default_code = "PERMISSION_MISSING"
    shown = ("permission",)

    def __init__(self, permission: str) -> None:
        super().__init__(f"The permission {permission} is missing", permission=permission)


class CompanySuspended(Forbidden):
    """The operator of the service has suspended the company: its data stays, and its users have no access for now."""

    default_code = "COMPANY_SUSPENDED"
    default_message = "This company is suspended; ask the operator of the service"


class NotFound(ServiceError):
    """The resource is unknown, deleted, or another company's; the response is the same for all three.

    `resource` names its kind in lower case, such as "customer" or "workout block"; `message` replaces the usual one.
    `field`: the path of the reference in the request.
    """

    status, reason, default_code = 404, "Not Found", "NOT_FOUND"

    def __init__(self, resource: str, message: str | None = None, *, field: str = "") -> None:
        code = f"{resource.upper().replace(' ', '_').replace('-', '_')}_NOT_FOUND"
        super().__init__(
            message or f"{resource[0].upper()}{resource[1:]} not found", code=code, resource=resource, field=field
        )


def require_found(document: T | None, resource: str) -> T:
    """Return a document that was looked up. Raises NotFound, with the kind of resource, if there is none."""
    if document is None:
        raise NotFound(resource)
    return document


def require_by_id(documents: Iterable[D], document_id: ObjectId, resource: str) -> D:
    """Return the document with an identifier. Raises NotFound, with the kind of resource."""
    for document in documents:
        if document["_id"] == document_id:
            return document
    raise NotFound(resource)


class RouteNotFound(ServiceError):
    """No operation has this path."""

    status, reason, default_code = 404, "Not Found", "ROUTE_NOT_FOUND"


class MethodNotAllowed(ServiceError):
    """The path is known, with other methods."""

    status, reason, default_code = 405, "Method Not Allowed", "METHOD_NOT_ALLOWED"


class RequestTimeout(ServiceError):
    """The body did not arrive in time."""

    status, reason, default_code = 408, "Request Timeout", "REQUEST_TIMEOUT"


class Conflict(ServiceError):
    """The document has changed since it was read, or the operation collides with another."""

    status, reason, default_code = 409, "Conflict", "CONFLICT"


class ExternalIdTaken(Conflict):
    """Another record of the same kind has this external identifier."""

    default_code = "EXTERNAL_ID_TAKEN"

    def __init__(self, holder: ObjectId | None = None) -> None:
        """Create the error; `holder` is the other record, if it is known."""
        super().__init__("Another record of the same kind has this externalId", holder=holder)

    def body(self) -> ErrorBody:
        """Return the common shape with the identifier of the other record."""
        holder = self.details["holder"]
        body = super().body()
        return body if holder is None else {**body, "_id": str(holder)}


class CursorExpired(ServiceError):
    """The events after the cursor are not available: read the current state, and continue without a cursor.

    They are too old, or the cursor is ahead of the log: it is from before an older copy of the data was restored.
    """

    status, reason, default_code = 410, "Gone", "CURSOR_EXPIRED"
    default_message = "The events after this cursor are not available; read the data again, then continue without it"


class PreconditionFailed(ServiceError):
    """The record is not as `If-Match` or `If-None-Match` requires: nothing was changed."""

    status, reason, default_code = 412, "Precondition Failed", "VERSION_CONFLICT"
    default_message = "The record has another version than If-Match; read it again and retry"


class TooLarge(ServiceError):
    """The body is over its limit."""

    status, reason, default_code = 413, "Payload Too Large", "PAYLOAD_TOO_LARGE"


class StorageQuotaExceeded(TooLarge):
    """The company stores as many files, or bytes of files, as the operator of the service allows."""

    default_code = "STORAGE_QUOTA_EXCEEDED"


class UnsupportedMediaType(ServiceError):
    """The body has a content type that the operation does not accept."""

    status, reason, default_code = 415, "Unsupported Media Type", "UNSUPPORTED_MEDIA_TYPE"


class TooManyRequests(ServiceError):
    """The caller must slow down; `Retry-After` says for how long."""

    status, reason, default_code = 429, "Too Many Requests", "TOO_MANY_REQUESTS"


class InternalError(ServiceError):
    """A defect. Its cause is in the log under the request id, never in the response."""

    default_message = "Internal server error"


class Unavailable(ServiceError):
    """The service, or the database, cannot process the request now: nothing was changed. It always has `Retry-After`.

    An interface reports OutcomeUnknown instead if the request may have changed something.
    """

    status, reason, default_code = 503, "Service Unavailable", "UNAVAILABLE"
    default_headers = RETRY_SOON


class OutcomeUnknown(ServiceError):
    """The database was lost while the change was saved, or a part of it was: it may have been saved.

    `Retry-After` is only sent if the request had an `Idempotency-Key`, with which it is safe to send it again.
    """

    status, reason, default_code = 503, "Service Unavailable", "OUTCOME_UNKNOWN"

    def __init__(self, has_key: bool = False) -> None:
        """Create the error; `has_key`: the request can be sent again with its key."""
        advice = "send it again with the same Idempotency-Key" if has_key else "look before you try again"
        super().__init__(f"It may have been saved: {advice}", RETRY_SOON if has_key else None)
        self.has_key = has_key


class LoadsConverting(Unavailable):
    """The loads of the company are being converted to another unit: what is read or written now could be in either."""

    default_message = "The loads of the company are being converted to another unit; try again shortly"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": "5"}


class StorageFull(ServiceError):
    """The disk of the database is nearly full: nothing was changed. Reads continue, and changes once there is space."""

    status, reason, default_code = 507, "Insufficient Storage", "STORAGE_FULL"
    default_message = "The disk of the service is nearly full, so nothing can be saved; ask its operator to free space"


class LegacyFailure(ServiceError):
    """One of the four documented bad requests that respond 500 with `{code, message}`: permanent, nothing written."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code)

    def body(self) -> ErrorBody:
        """Return the legacy shape: `{code, message}`."""
        return {"code": self.code, "message": self.message}


class ClientDisconnected(Exception):
    """The client closed the connection: no response can be sent."""


def invalid_field(field: str, message: str, *, code: str = "INVALID") -> InvalidFields:
    """Return the error for one invalid field: `invalid_field("items", "must not hold more than 100 entries")`."""
    return InvalidFields([{"field": field, "code": code, "message": message}])

"""What an operation responds, or the error that it responds instead."""

from __future__ import annotations

from typing import Any, TypeVar, overload

from coaching_service_client.models import (
    CredentialError,
    Error,
    FieldError,
    LegacyFailureMetricsSetMissing,
    LegacyFailureNutritionPlanFileMissing,
    LegacyFailurePersonalRecordIdInvalid,
    LegacyFailureWitemMoveIncomplete,
)

T = TypeVar("T")
_LEGACY_FAILURES = (
    LegacyFailureMetricsSetMissing,
    LegacyFailureNutritionPlanFileMissing,
    LegacyFailurePersonalRecordIdInvalid,
    LegacyFailureWitemMoveIncomplete,
)
Failure = (
    CredentialError
    | Error
    | LegacyFailureMetricsSetMissing
    | LegacyFailureNutritionPlanFileMissing
    | LegacyFailurePersonalRecordIdInvalid
    | LegacyFailureWitemMoveIncomplete
)


class RequestFailed(Exception):
    """The service has refused a request, or failed.

    `status` is the HTTP status, `code` the stable code of the error or None, `fields` the invalid fields of a 400. Do
    not depend on the text of `message`.
    """

    def __init__(self, status: int, code: str | None, message: str, fields: list[FieldError]) -> None:
        super().__init__(f"{status} {code or ''}: {message}")
        self.status, self.code, self.message, self.fields = status, code, message, fields


@overload
def ok(result: T | Failure | None) -> T: ...


@overload
def ok(result: object, expected: type[T]) -> T: ...


def ok(result: object, expected: type[Any] | None = None) -> Any:
    """Return what an operation responded, None where there is no body. Raises RequestFailed for an error.

    Where an operation can respond several types, `expected` is the one to return; TypeError for another. Use it with a
    client from `connect`, which raises UnexpectedStatus for a status that the document does not have.
    """
    if isinstance(result, Error):
        sentences = result.message if isinstance(result.message, list) else [result.message]
        raise RequestFailed(result.status_code, result.code or None, "; ".join(sentences), result.errors or [])
    if isinstance(result, CredentialError):
        raise RequestFailed(401, None, result.message, [])
    if isinstance(result, _LEGACY_FAILURES):
        raise RequestFailed(500, result.code, result.message, [])
    if expected is not None and not isinstance(result, expected):
        raise TypeError(f"the response is not a {expected.__name__}: {result!r}")
    return result

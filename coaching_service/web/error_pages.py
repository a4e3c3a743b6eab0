"""Whatever goes wrong, as an error that can be told."""

from __future__ import annotations

import structlog
from aiohttp import web

from coaching_service.core.database.connection import as_service_error
from coaching_service.core.errors import BadRequest, InternalError, LegacyFailure, ServiceError
from coaching_service.core.http.middleware import REQUEST_ID

log = structlog.get_logger("coaching_service.web")


def to_service_error(request: web.Request, error: Exception) -> ServiceError:
    """The error a visitor is told; what was not foreseen is logged, and told as no more than that.

    What REST has to answer with a documented 500 is a bad request here, as it is one.
    """
    if isinstance(error, LegacyFailure):
        return BadRequest(error.message)
    found = error if isinstance(error, ServiceError) else as_service_error(error)
    if found is None:
        log.error("unforeseen", request_id=request[REQUEST_ID], route=request.path, exc_info=error)
        return InternalError()
    return found

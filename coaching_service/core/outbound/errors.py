"""Why a request to an address that a user entered had no response."""

from __future__ import annotations


class OutboundError(Exception):
    """A request had no response. `code` is stable and UPPER_SNAKE; the message contains nothing that was received."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message, self.trace_reason = code, message, code

    @property
    def public_code(self) -> str:
        """What users may know. `code` is for operators."""
        return self.code


class NoConnection(OutboundError):
    """No trusted connection was established. Users get no reason: they could explore names and ports with it."""

    def __init__(self, code: str) -> None:
        super().__init__(code, "no connection could be established")

    @property
    def public_code(self) -> str:
        """The same code for every reason."""
        return "CONNECTION_FAILED"

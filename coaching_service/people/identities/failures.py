"""Failed sign-ins: counted for a device that signed in before, else for the account and for the network address."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core import rate_limits
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads

ACCOUNT_FAILURES, NETWORK_FAILURES = 6, 30
# The names under which failures are counted; the last one: failures of an account from a network address.
_DEVICE, _ACCOUNT, _NETWORK, _ACCOUNT_IN_NETWORK = "device", "account", "address", "account at address"


@dataclass(frozen=True, slots=True)
class Attempt:
    """Whose failures a sign-in counts to: of `device` or, if it is None, of the account and the network."""

    account: str
    network: str
    device: str | None = None

    @property
    def limits(self) -> list[tuple[str, str, int]]:
        """The counters of failures: kind, name, and the number from which they refuse."""
        if self.device is not None:
            return [(_DEVICE, self.device, ACCOUNT_FAILURES)]
        return [(_ACCOUNT, self.account, ACCOUNT_FAILURES), (_NETWORK, self.network, NETWORK_FAILURES)]

    @property
    def account_in_network(self) -> str:
        """The name of the account at its network address."""
        return f"{self.network} {self.account}"


async def require_few(ctx: Context, attempt: Attempt) -> None:
    """Raise TooManyRequests if too many failures have been counted."""
    counts = await gather_reads(
        ctx, *(rate_limits.get_count(ctx.services, kind, name) for kind, name, _ in attempt.limits)
    )
    _require_few(ctx, attempt, counts)


async def count(ctx: Context, attempt: Attempt) -> None:
    """Count a failure. Raises TooManyRequests if there are too many then."""
    counts = [await rate_limits.count(ctx.services, kind, name) for kind, name, _ in attempt.limits]
    if attempt.device is None:
        await rate_limits.count(ctx.services, _ACCOUNT_IN_NETWORK, attempt.account_in_network)
    _require_few(ctx, attempt, counts)


async def clear(ctx: Context, attempt: Attempt) -> None:
    """Reset the failures of an account and a device; the account's no longer count to the network address.

    So users who share a network address and sign in after some failures do not lock it for one another.
    """
    await rate_limits.reset(ctx.services, _ACCOUNT, attempt.account)
    if attempt.device is not None:
        await rate_limits.reset(ctx.services, _DEVICE, attempt.device)
    if number := await rate_limits.take(ctx.services, _ACCOUNT_IN_NETWORK, attempt.account_in_network):
        await rate_limits.count(ctx.services, _NETWORK, attempt.network, number=-number)


def _require_few(ctx: Context, attempt: Attempt, counts: list[tuple[int, int]]) -> None:
    full = [number >= maximum for (number, _), (_, _, maximum) in zip(counts, attempt.limits, strict=True)]
    if any(full):
        ctx.services.metrics.sign_in_failures.labels("too_many_failures").inc()
        raise rate_limits.too_many_requests(ctx.services, "sign-in", max(seconds for _, seconds in counts))

"""The first text of the OpenAPI document: what all operations have in common."""

from __future__ import annotations

INTRODUCTION = """\
Clients, training and progress of coaching businesses.

**Credentials.** `X-API-Key` for backends; `Authorization: Bearer` for a session. When both are sent, the bearer
decides.

**Retries.** Reads may be retried. PUT and DELETE leave the same state when repeated. A POST that changes data takes an
`Idempotency-Key`: the same key and body returns the first answer again for 24 hours, with `Idempotent-Replayed: true`;
while the first request is running it is 409 with `Retry-After`. Operations about keys, the team and invitations refuse
it (400 `IDEMPOTENCY_NOT_SUPPORTED`); sign-in and impersonation ignore it.
A 503 with the code `UNAVAILABLE` has changed nothing, so any request may be sent again after `Retry-After`. With
`OUTCOME_UNKNOWN` a change may have been saved, or a part of it: look before you repeat it, unless it had an
`Idempotency-Key` (then it has `Retry-After`) or is a PUT or DELETE.
A 500 with a `code` is permanent; another 500 on a write must not be blindly repeated. `x-retry` states it for each
operation, and `x-retry-policy` in a word: `safe`, `idempotencyKey`, `version` or `never`.

**Limits.** A JSON body holds at most 1 MiB unless the operator sets another limit (413); a workout block 100 items.
The operator may limit the requests a minute of each key and session: then every response to it has `RateLimit-Policy`
and `RateLimit` (`"requests";r=12;t=1`: 12 remain, and another one is available in 1 second), and 429 says in
`Retry-After` when to continue.

**Dry runs.** With `dryRun: true` in the body, an operation that has this field returns what it would do and writes
nothing. Every other operation that writes refuses `dryRun` with 400.

**Strictness.** Unknown query parameters and body fields are ignored. With the header `Prefer: handling=strict`, which
every operation accepts (`#/components/parameters/Prefer`), they are 400 with the code `UNKNOWN_FIELD`, and the response
has `Preference-Applied: handling=strict`. Send it while you develop.

**Jobs.** A bulk operation on more than 500 clients, or with `Prefer: respond-async`, is 202 with a `jobId`, and
`Preference-Applied: respond-async` if it was preferred. So is the undo of such a batch.

**Versions of records.** A response with one record has its `version` in the `ETag`. PUT, PATCH and DELETE with that
value as `If-Match` change nothing if the record has another version by now: 412 `VERSION_CONFLICT`. A `version` in the
body does the same, with 409. PUT by-external-id with `If-None-Match: *` only creates (412 `ALREADY_EXISTS`). An
operation that cannot keep one of these headers refuses it (400 `NOT_SUPPORTED`).

**Bytes.** JSON of more than 1 kB is compressed for `Accept-Encoding: gzip`. Operations with a 304 send an `ETag`, which
`If-None-Match` takes.

**Versions.** Changes are additive only: new operations, new optional inputs, new fields in responses. `info.version`
counts them; nothing is removed or renamed. Ignore fields you do not know.
"""

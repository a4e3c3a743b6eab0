"""Forwarding the events of a company to a program under development."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypedDict
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import click

from coaching_service.people.webhooks import service as webhooks

_WAIT, _TIMEOUT = 25, 60.0
_LIMIT = 500
_MAX_DELAY = 30.0
_CURSOR_EXPIRED = 410


class _State(TypedDict):
    """What is kept between two runs: where to continue (None: with the events from now on), and the secret."""

    cursor: str | None
    secret: str


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect: it is an error, as for webhooks."""


_opener = build_opener(_NoRedirects)


def _address(_: click.Context, parameter: click.Parameter, value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.BadParameter("write it as http://HOST or https://HOST", param=parameter)
    return value.rstrip("/") if parameter.name == "url" else value


@click.command("listen")
@click.option("--url", required=True, callback=_address, help="Address of the service.")
@click.option("--key", required=True, envvar="COACHING_KEY", help="API key; or set COACHING_KEY.")
@click.option(
    "--forward-to",
    required=True,
    callback=_address,
    help="Address of your program, such as http://localhost:4000/hook.",
)
@click.option("--type", "types", multiple=True, help="Only events of this type; repeatable.")
@click.option("--state", type=click.Path(path_type=Path, dir_okay=False), help="File for the position and the secret.")
def listen(url: str, key: str, forward_to: str, types: tuple[str, ...], state: Path | None) -> None:
    """Print the events of a company, and forward each to your program, signed as webhooks are.

    An event is sent again until your program accepts it (200 to 299), so they arrive in their order. The next run
    continues after the last one that was accepted, with the same secret.
    """
    name = hashlib.sha256(f"{url} {key}".encode()).hexdigest()[:16]
    file = state or Path(click.get_app_dir("coaching-service")) / "listen" / f"{name}.json"
    try:
        read = json.loads(file.read_text("utf-8"))
        stored: _State = {"cursor": read["cursor"], "secret": read["secret"]}
    except FileNotFoundError:
        stored = {"cursor": None, "secret": webhooks.new_secret()}
    except (ValueError, KeyError, TypeError):
        raise click.ClickException(f"{file} is not a file of this command: delete it") from None
    click.echo(f"Secret: {stored['secret']}")
    if (cursor := stored["cursor"]) is None:
        cursor = stored["cursor"] = _find_end(url, key)
        _write(file, stored)
    click.echo(f"Forwarding to {forward_to}")
    for event, after in _follow(url, key, types, cursor):
        _forward(forward_to, event, stored["secret"])
        stored["cursor"] = after
        _write(file, stored)


def _write(file: Path, state: _State) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text(json.dumps(state), "utf-8")
    new.replace(file)


def _find_end(url: str, key: str) -> str:
    """Return the cursor after the last event."""
    page = _get_events(url, key, {"limit": _LIMIT})
    while page["hasMore"]:
        page = _get_events(url, key, {"limit": _LIMIT, "after": page["nextCursor"]})
    return str(page["nextCursor"])


def _follow(url: str, key: str, types: tuple[str, ...], cursor: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each event after a cursor, with the cursor after it."""
    while True:
        try:
            page = _get_events(url, key, {"limit": _LIMIT, "after": cursor, "wait": _WAIT, "types": types})
        except _CursorExpired:
            click.echo("The position is too old: events have been missed; going on with those from now on.", err=True)
            cursor = _find_end(url, key)
            continue
        for event in page["docs"]:
            yield event, str(event["seq"])
        cursor = str(page["nextCursor"])


class _CursorExpired(Exception):
    """The events after a cursor are not available any more."""


def _get_events(url: str, key: str, query: Mapping[str, object]) -> Any:
    """Return a page of events; waits while the service does not respond. Raises ClickException, _CursorExpired."""
    request = Request(f"{url}/coach/events?{urlencode(query, doseq=True)}", headers={"X-API-Key": key})  # noqa: S310 - http or https
    for delay in _delays():
        try:
            with _opener.open(request, timeout=_TIMEOUT) as response:
                return json.load(response)
        except HTTPError as error:
            if error.code == _CURSOR_EXPIRED:
                raise _CursorExpired from None
            if error.code < 500 and error.code != 429:
                message = ""
                with suppress(OSError, ValueError, KeyError, TypeError):
                    message = str(json.load(error)["message"])
                raise click.ClickException(f"{url} refuses: {error.code} {message}") from None
            problem = str(error.code)
        except (OSError, HTTPException, ValueError) as error:
            problem = str(error)
        click.echo(f"{url} does not respond ({problem}); trying again", err=True)
        time.sleep(delay)
    raise AssertionError


def _forward(target: str, event: Mapping[str, Any], secret: str) -> None:
    """Send an event until it is accepted, with the same identifier and a new signature each time."""
    body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    message_id = f"msg_{event['id']}".replace(".", "_")
    for delay in _delays():
        headers = webhooks.headers_of(message_id, int(time.time()), body, [secret])
        began = time.monotonic()
        try:
            with _opener.open(Request(target, body, headers), timeout=_TIMEOUT) as response:  # noqa: S310 - http or https
                outcome, is_accepted = str(response.status), True
        except HTTPError as error:
            outcome, is_accepted = str(error.code), False
        except (OSError, HTTPException) as error:
            outcome, is_accepted = str(error), False
        milliseconds = round((time.monotonic() - began) * 1000)
        click.echo(f"{event['seq']} {event['type']} {event['customerId'] or '-'} -> {outcome} ({milliseconds} ms)")
        if is_accepted:
            return
        time.sleep(delay)


def _delays() -> Iterator[float]:
    """Yield how long to wait before each further attempt, in seconds: the command has nothing else to do meanwhile."""
    delay = 1.0
    while True:
        yield delay
        delay = min(delay * 2, _MAX_DELAY)

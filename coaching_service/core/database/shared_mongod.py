"""The embedded database of a folder for a command: the database of the running service, else one of its own.

Only the process that has locked the folder runs a mongod on it; it writes the port to `mongod.port`. The database has
one writer of its files, and any number of connections, so a command that connects to it needs no lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from coaching_service.core.database.embedded import (
    PORT_FILE,
    DatabaseUnavailable,
    FolderInUse,
    address_of,
    running_mongod,
)

_JOIN_SECONDS = 20.0  # a service that has just started needs this long at most
_PAUSE_SECONDS = 0.1
_CONNECT_MILLISECONDS = 500


@contextmanager
def shared_mongod(folder: Path) -> Iterator[str]:
    """Yield the URI of the embedded database of `folder`: of the process that has it open, if there is one.

    Otherwise runs a mongod while the context is open, as `running_mongod` does. Raises DatabaseUnavailable if neither
    is possible.
    """
    deadline = time.monotonic() + _JOIN_SECONDS
    while True:
        if (uri := _find_running(folder)) is not None:
            yield uri
            return
        with ExitStack() as stack:
            try:
                uri = stack.enter_context(running_mongod(folder))
            except FolderInUse:
                if time.monotonic() > deadline:
                    raise DatabaseUnavailable(
                        f"A service is running on {folder}, and its database does not respond: stop it, or wait."
                    ) from None
            else:
                yield uri
                return
        time.sleep(_PAUSE_SECONDS)


def _find_running(folder: Path) -> str | None:
    """Return the URI of the mongod that runs on `folder`; None if there is none, or it does not accept writes.

    The port may have been used by a service that was killed, and belong to another program now: the folder is compared.
    """
    try:
        port = int((folder / PORT_FILE).read_text())
    except (OSError, ValueError):
        return None
    try:
        with MongoClient[dict[str, object]](
            "127.0.0.1",
            port,
            directConnection=True,
            serverSelectionTimeoutMS=_CONNECT_MILLISECONDS,
            connectTimeoutMS=_CONNECT_MILLISECONDS,
            socketTimeoutMS=_CONNECT_MILLISECONDS * 4,
        ) as client:
            options: dict[str, dict[str, dict[str, str]]] = client.admin.command("getCmdLineOpts")
            is_writable = bool(client.admin.command("hello").get("isWritablePrimary"))
            path = Path(options["parsed"]["storage"]["dbPath"])
    except (PyMongoError, KeyError):
        return None
    return address_of(port) if is_writable and path.resolve() == (folder / "mongodb").resolve() else None

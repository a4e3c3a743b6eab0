"""MongoDB has to be a replica set: without one there are no transactions."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from coaching_service.core.auth import new_master_key
from coaching_service.installation.embedded import find_mongod
from tests.support.commands import type_in


@pytest.fixture
def lone_mongod(tmp_path: Path) -> Iterator[str]:
    """The URI of a mongod that was started without options."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "lone"
    folder.mkdir()
    command = [find_mongod(), "--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1"]
    with subprocess.Popen([*command, "--nounixsocket"], stdout=subprocess.DEVNULL) as mongod:
        uri = f"mongodb://127.0.0.1:{port}"
        with MongoClient[dict[str, Any]](uri) as client:
            client.admin.command("ping")
        yield uri
        mongod.terminate()


def test_mongod_without_a_replica_set_is_refused_with_instructions(lone_mongod: str) -> None:
    result = type_in("ensure-indexes", MONGODB_URI=lone_mongod, SECRET_KEYS=new_master_key())
    assert result.refused() == (
        "MONGODB_URI names a MongoDB that is not a replica set and does not support transactions: start it with "
        "--replSet rs0, and run rs.initiate() in it once"
    )

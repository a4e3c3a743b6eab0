"""The service without its database, and without the secret key that the database was created with."""

from __future__ import annotations

import os
import signal

from tests.support.drill import require_whole_service
from tests.support.service_process import Service, mongods_of, refused


async def test_service_ends_when_its_database_ends(service: Service) -> None:
    """A restart starts both again, and no data are lost."""
    await service.start()
    ana = await service.create("Ana")
    [mongod] = mongods_of(service.folder)

    os.kill(mongod, signal.SIGKILL)

    assert await service.ended() == 1
    assert "the embedded database has ended by itself" in service.logged
    await service.start()
    assert (await service.customers())[ana] == "Ana"
    await require_whole_service(service)


async def test_missing_key_file_is_reported_and_not_recreated(service: Service) -> None:
    """A new key would invalidate every API key."""
    await service.start()
    await service.end()
    key_file = service.folder / "secret.key"
    moved = key_file.rename(service.folder.with_suffix(".key"))

    sentence = refused(service.folder)

    assert sentence.startswith(
        f"{key_file} is missing, and the database in the same folder was created with it: put it back"
    )
    assert not key_file.exists()
    moved.rename(key_file)
    await service.start()
    await service.call("GET", "/me")
    await require_whole_service(service)

"""What the service does without its database, and without the key its database was made with."""

from __future__ import annotations

import os
import signal

from tests.support.service_process import Service, mongods_of, refused


async def test_a_service_whose_database_dies_ends_and_says_so(service: Service) -> None:
    """Whoever keeps it running starts both anew, and nothing is lost."""
    await service.start()
    ana = await service.create("Ana")
    [mongod] = mongods_of(service.folder)

    os.kill(mongod, signal.SIGKILL)

    assert await service.ended() == 1
    assert "the embedded database has ended by itself" in service.logged
    await service.start()
    assert (await service.customers())[ana] == "Ana"


async def test_a_lost_key_file_is_asked_for_and_not_made_anew(service: Service) -> None:
    """A new one would turn every API key away."""
    await service.start()
    await service.end()
    kept = service.folder / "secret.key"
    elsewhere = kept.rename(service.folder.with_suffix(".key"))

    sentence = refused(service.folder)

    assert sentence.startswith(
        f"{kept} is missing, and the database in the same folder was created with it: put it back"
    )
    assert not kept.exists()
    elsewhere.rename(kept)
    await service.start()
    await service.call("GET", "/me")

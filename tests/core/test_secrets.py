"""Secrets: encrypted at rest, rotated without an effect on users, and never revealed."""

from __future__ import annotations

import io
import secrets
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from coaching_service import logs, runtime, serving
from coaching_service.__main__ import main
from coaching_service.app import create_app
from coaching_service.core.auth import SecretUnreadable, Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import Context
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings
from tests.support.client import CoachClient

OLD, NEW = parse_master_key(new_master_key()), parse_master_key(new_master_key())


def test_encrypted_value_is_bound_to_its_record() -> None:
    vault = Vault([NEW])
    sealed = vault.seal(b"secret", "apiKey:1")
    assert b"secret" not in sealed
    assert vault.open(sealed, "apiKey:1") == b"secret"
    for broken, bound_to in ((sealed, "apiKey:2"), (sealed[:-1], "apiKey:1"), (b"", "apiKey:1")):
        with pytest.raises(SecretUnreadable):
            vault.open(broken, bound_to)
    with pytest.raises(SecretUnreadable):
        Vault([OLD]).open(sealed, "apiKey:1")


def test_newest_key_encrypts_and_every_key_decrypts() -> None:
    before, both = Vault([OLD]), Vault([NEW, OLD])
    sealed = before.seal(b"secret", "x")
    assert both.open(sealed, "x") == b"secret"
    assert (both.is_current(sealed), both.is_current(both.seal(b"", "x"))) == (False, True)
    assert before.keyed_hash("k") in both.keyed_hashes("k")
    assert both.verify_signature("text", before.sign("text"))
    assert not both.verify_signature("text", before.sign("other"))


async def test_key_rotation_keeps_secrets_readable(settings: Settings, password_hash: str) -> None:
    old, new = new_master_key(), new_master_key()
    name = f"{settings.mongodb_database}_rotation"

    def at(*keys: str) -> Settings:
        return settings.model_copy(update={"secret_keys": keys, "mongodb_database": name})

    async with runtime.open_services(at(old)) as services:
        owner = await team.create_company(Context(services), "C", "O", "o@rotation.test", password_hash)
        key = (await api_keys.create(Context(services, owner), "K"))["key"]

    async with runtime.open_services(at(new, old)) as services:
        assert (await api_keys.authenticate(services, key)).id == owner.id
        assert [changed async for changed in api_keys.rotate_master_key(services)] == [True]
        assert [changed async for changed in api_keys.rotate_master_key(services)] == [False]

    async with runtime.open_services(at(new)) as services:
        assert (await api_keys.authenticate(services, key)).id == owner.id
        assert await api_keys.find_secret(Context(services, owner), "K") == key
        await services.db.client.drop_database(name)


def test_rotate_secrets_command_reports_its_counts(settings: Settings) -> None:
    given = {
        "MONGODB_URI": str(settings.mongodb_uri),
        "MONGODB_DATABASE": f"{settings.mongodb_database}_rotated",
        "SECRET_KEYS": ",".join([new_master_key(), new_master_key()]),
    }
    assert CliRunner().invoke(main, ["ensure-indexes"], env=given).exit_code == 0
    result = CliRunner().invoke(main, ["rotate-secrets"], env=given)
    assert (result.exit_code, result.output) == (0, "0 keys, 0 of them re-encrypted\n")


async def test_a_revoked_key_fails_on_the_next_request_of_every_process(settings: Settings, coach: CoachClient) -> None:
    """Two processes' worth of service on one database: keys are cached, so their deletion waits."""
    async with runtime.open_services(settings) as services, TestServer(create_app(settings, services)) as second:
        there = CoachClient(second, coach.key, None)
        session = await coach.interactive()
        for _ in range(3):
            (await there.get("/me")).ok()
        [key] = (await session.get("/coach/api-keys")).ok()
        (await session.delete(f"/coach/api-keys/{key['_id']}")).ok(204)
        (await there.get("/me")).refused(401)
        await there.close()


@pytest.fixture(params=["json", "console"])
def log(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.BytesIO]:
    """The log of the service at level debug."""
    stream = io.BytesIO()
    wrapper = io.TextIOWrapper(stream, write_through=True)
    monkeypatch.setattr(sys, "stderr", wrapper)
    before = structlog.get_config()
    logs.configure(request.param, "debug")
    yield stream
    structlog.configure(**before)


def test_logged_traceback_contains_no_local_values(log: io.BytesIO) -> None:
    password = secrets.token_hex()
    try:
        int("of no use")
    except ValueError:
        structlog.get_logger().exception("It failed")
    lines = log.getvalue().decode()
    assert "ValueError" in lines
    assert password not in lines


async def test_database_address_is_only_logged(settings: Settings, log: io.BytesIO) -> None:
    uri = str(settings.mongodb_uri).replace("://", "://someone:hunter2@")
    locked_out = runtime.open_services(settings.model_copy(update={"mongodb_uri": uri}))
    async with locked_out as services, TestServer(create_app(settings, services)) as server:
        coach = CoachClient(server, "cs_ak_x", None)
        reply = await coach.get("/me")
        await coach.close()
    reply.refused(503, "contact its operator")
    assert b"MONGODB_URI" not in reply.raw
    assert b"MONGODB_URI" in log.getvalue()
    assert b"hunter2" not in log.getvalue()


def test_key_file_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    ready = Settings(data_dir=tmp_path / "data").with_secret_keys()
    file = tmp_path / "data" / "secret.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert ready.secret_keys == (file.read_text().strip(),)
    assert Settings(data_dir=tmp_path / "data").with_secret_keys() == ready


async def test_missing_master_key_is_named_by_its_fingerprint(coach: CoachClient, log: io.BytesIO) -> None:
    """At start the log counts the unreadable API keys of each missing master key, and never shows a key."""
    services = coach.ctx.services
    other = replace(services, vault=Vault([NEW]))
    [fingerprint] = services.vault.fingerprints
    with pytest.raises(SecretUnreadable, match=f"the master key {fingerprint}, which is not in SECRET_KEYS"):
        Vault([NEW]).open(services.vault.seal(b"secret", "x"), "x")
    await serving._report_unreadable_keys(other)
    assert f"{fingerprint}" in log.getvalue().decode()
    assert (await api_keys.count_unreadable(other))[fingerprint] > 0
    assert await api_keys.count_unreadable(services) == {}

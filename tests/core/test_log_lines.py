"""The log: who sent a request from where, and what a process was started with."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from pymongo.errors import AutoReconnect

from coaching_service import __version__
from coaching_service.app import create_app
from coaching_service.core.changes import numbering
from coaching_service.core.database.connection import unreachable
from coaching_service.core.database.context import Services
from coaching_service.installation.server_versions import remark_on
from coaching_service.people.webhooks import dispatcher
from coaching_service.settings import Settings
from tests.support.client import CoachClient
from tests.support.logs import recorded_logs
from tests.support.sampled import some
from tests.support.service_process import environment

COMMON = {"event", "log_level", "method", "route", "status", "ms", "address", "request_id"}
CALLER = {"company", "via", "credential"}


async def line_of(client: CoachClient, path: str, **headers: str) -> dict[str, Any]:
    """The line of one request."""
    with recorded_logs() as entries:
        await client.send("GET", path, headers=headers)
    (line,) = [entry for entry in entries if entry["event"] == "request"]
    return dict(line)


async def test_request_line_names_the_caller_by_identifiers(
    coach: CoachClient, interactive: CoachClient, anonymous: CoachClient
) -> None:
    by_key = await line_of(coach, "/me")
    assert set(by_key) == COMMON | CALLER | {"coach"}
    key = await coach.ctx.db["apiKeys"].find_one({"companyId": coach.ctx.company_id})
    assert key is not None
    assert (by_key["via"], by_key["credential"]) == ("apiKey", str(key["_id"]))
    assert (by_key["coach"], by_key["company"]) == (str(coach.ctx.caller.id), str(coach.ctx.company_id))

    by_session = await line_of(interactive, "/me")
    session = await coach.ctx.db["sessions"].find_one({"subjectId": coach.ctx.caller.id})
    assert session is not None
    assert (by_session["via"], by_session["credential"]) == ("session", str(session["_id"]))

    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    by_client = await line_of(client, "/me")
    assert set(by_client) == COMMON | CALLER | {"client"}
    assert by_client["client"] == ana["_id"]

    refused = await line_of(anonymous, "/me")
    assert set(refused) == COMMON
    assert (refused["status"], refused["address"]) == (401, "127.0.0.1")


async def test_address_is_the_one_that_trusted_proxies_report(settings: Settings, services: Services) -> None:
    forwarded = {"X-Forwarded-For": "192.0.2.1, 203.0.113.9, 198.51.100.7"}
    for proxies, address in ((0, "127.0.0.1"), (1, "198.51.100.7"), (2, "203.0.113.9")):
        app = create_app(settings.model_copy(update={"trusted_proxies": proxies}), services)
        async with TestServer(app) as server:
            client = CoachClient(server, None, None)
            assert (await line_of(client, "/me", **forwarded))["address"] == address
            await client.close()


def test_changed_settings_are_listed_without_secrets(tmp_path: Path) -> None:
    settings = Settings(
        mongodb_uri="mongodb://owner:hidden-1@one:27017,two:27017/?replicaSet=rs0",
        secret_keys=("hidden-2", "hidden-3"),
        smtp_host="mail.example",
        smtp_username="us",
        smtp_password="hidden-4",
        data_dir=tmp_path,
        workers=0,
        trusted_proxies=2,
        cors_origins=("https://a.example", "https://b.example"),
    )
    changed = settings.changed()
    assert changed == {
        "MONGODB_URI": "one:27017,two:27017",
        "SECRET_KEYS": "***",
        "SMTP_HOST": "mail.example",
        "SMTP_USERNAME": "us",
        "SMTP_PASSWORD": "***",
        "DATA_DIR": str(tmp_path),
        "TRUSTED_PROXIES": "2",
        "CORS_ORIGINS": "https://a.example,https://b.example",
    }
    assert "hidden" not in str(changed)


async def test_start_is_logged_with_version_settings_and_warnings_about_mail_and_database(
    services: Services, settings: Settings, tmp_path: Path
) -> None:
    version = (await services.db.client.server_info())["version"]
    remark = remark_on(version, datetime.now(UTC).date())
    uri, keys = str(settings.mongodb_uri), ",".join(settings.secret_keys)
    for mail, warns in some([({}, True), ({"SMTP_HOST": "127.0.0.1"}, False)], 1):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "coaching_service", "serve", "--port", "0", "--data", str(tmp_path)),
            env=environment(MONGODB_URI=uri, MONGODB_DATABASE=settings.mongodb_database, SECRET_KEYS=keys, **mail),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline()
        process.terminate()
        _, logged = await process.communicate()
        lines = [json.loads(line) for line in logged.splitlines()]
        (start,) = [line for line in lines if line["event"] == "the service starts"]
        assert (start["version"], start["level"], start["database"]) == (__version__, "info", "external")
        assert start["settings"]["SECRET_KEYS"] == "***"
        assert start["settings"]["DATA_DIR"] == str(tmp_path)
        assert keys.encode() not in logged
        assert (
            any(line["level"] == "warning" and "mail is written to files" in line["event"] for line in lines) is warns
        )
        about_database = [line for line in lines if line.get("version") == version]
        assert [(line["level"], line["event"]) for line in about_database] == (
            [("warning", remark.problem)] if remark else []
        )


@pytest.mark.parametrize("log_failure", [numbering._log_failure, dispatcher._log_failure], ids=["numbers", "webhooks"])
def test_outage_of_the_database_is_a_warning_and_a_defect_an_error(log_failure: Callable[[Exception], object]) -> None:
    """Also one that a transaction has reported already, as Unavailable."""
    with recorded_logs() as entries:
        for error in (unreachable(), AutoReconnect(), ValueError("a defect")):
            log_failure(error)
    assert [(entry["log_level"], "exc_info" in entry) for entry in entries] == [
        ("warning", False),
        ("warning", False),
        ("error", True),
    ]

"""Settings: every one is read from the environment."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from coaching_service.settings import Settings, SettingsError

OTHER: dict[str, tuple[str, object]] = {
    "data_dir": ("/elsewhere", Path("/elsewhere")),
    "secret_keys": ("a,b", ("a", "b")),
    "registration": ("false", False),
    "smtp_encryption": ("tls", "tls"),
    "log_format": ("json", "json"),
    "log_level": ("warning", "warning"),
    "mcp_origins": ("https://a.example/,https://b.example", ("https://a.example", "https://b.example")),
    "trusted_proxies": ("2", 2),
    "shutdown_seconds": ("30", 30),
    "base_url": ("https://coaching.example/", "https://coaching.example"),
    "mongodb_uri": ("mongodb://host:27017", "mongodb://host:27017"),
    "mail_from": ("Coaching <us@coaching.example>", "Coaching <us@coaching.example>"),
}
PAIR = ("smtp_username", "smtp_password")


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_setting_is_read_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    default = getattr(Settings(), name)
    numeric = isinstance(default, int) or name == "metrics_port"
    text, wanted = OTHER.get(name, ("1234", 1234) if numeric else ("other", "other"))
    if name == "database_concurrency":
        text, wanted = "12", 12
    for field in fields(Settings):
        monkeypatch.delenv(field.name.upper(), raising=False)
    monkeypatch.setenv(name.upper(), text)
    if name in PAIR:
        monkeypatch.setenv(next(each for each in PAIR if each != name).upper(), "beside")

    assert getattr(Settings.from_environment(), name) == wanted


@pytest.mark.parametrize("name", PAIR)
def test_a_name_without_its_password_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name.upper(), "alone")
    with pytest.raises(SettingsError, match="SMTP_USERNAME and SMTP_PASSWORD belong together"):
        Settings.from_environment()


def test_what_is_set_to_nothing_is_as_if_it_were_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a compose file can pass on what may be missing."""
    for field in fields(Settings):
        if field.name != "registration":
            monkeypatch.setenv(field.name.upper(), "")
    assert Settings.from_environment() == Settings()

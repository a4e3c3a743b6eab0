"""Settings: every one is read from the environment."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from coaching_service.settings import Settings

OTHER: dict[str, tuple[str, object]] = {
    "data_dir": ("/elsewhere", Path("/elsewhere")),
    "secret_keys": ("a,b", ("a", "b")),
    "registration": ("false", False),
    "smtp_encryption": ("tls", "tls"),
    "log_format": ("json", "json"),
    "log_level": ("warning", "warning"),
    "mcp_origins": ("https://a.example/,https://b.example", ("https://a.example", "https://b.example")),
    "trusted_proxies": ("2", 2),
}


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

    assert getattr(Settings.from_environment(), name) == wanted

"""The settings of a process, read once from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from environs import Env, EnvError

from coaching_service.kernel.auth.secrets import Vault, new_master_key, parse_master_key


class SettingsError(Exception):
    """A setting that cannot be used; the message is one sentence that says what to do."""


@dataclass(frozen=True)
class Settings:
    """Every setting of the service; README, Configuration, lists them with their environment names."""

    host: str = "127.0.0.1"
    port: int = 8080
    base_url: str | None = None
    data_dir: Path = Path(".local")
    mongodb_uri: str | None = field(default=None, repr=False)
    mongodb_database: str = "coaching"
    secret_keys: tuple[str, ...] = field(default=(), repr=False)
    max_body_bytes: int = 1_048_576
    database_concurrency: int = 8
    metrics_port: int | None = None
    log_format: str = "auto"
    log_level: str = "info"

    @classmethod
    def from_environment(cls) -> Settings:
        """Read the settings. Raises SettingsError naming the variable that cannot be used."""
        env = Env()
        try:
            return cls(
                host=env.str("HOST", cls.host),
                port=env.int("PORT", cls.port),
                base_url=env.str("BASE_URL", "").rstrip("/") or None,
                data_dir=Path(env.str("DATA_DIR", str(cls.data_dir))),
                mongodb_uri=env.str("MONGODB_URI", "") or None,
                mongodb_database=env.str("MONGODB_DATABASE", cls.mongodb_database),
                secret_keys=tuple(env.list("SECRET_KEYS", [])),
                max_body_bytes=env.int("MAX_BODY_BYTES", cls.max_body_bytes),
                database_concurrency=env.int("DATABASE_CONCURRENCY", cls.database_concurrency),
                metrics_port=env.int("METRICS_PORT", None),
                log_format=env.str("LOG_FORMAT", cls.log_format),
                log_level=env.str("LOG_LEVEL", cls.log_level),
            )
        except EnvError as error:
            raise SettingsError(str(error)) from None

    def with_keys(self) -> Settings:
        """The same with its master keys: SECRET_KEYS, or with the embedded database one kept in the data folder.

        Raises SettingsError when there is none.
        """
        if self.secret_keys:
            return self
        if self.mongodb_uri is not None:
            raise SettingsError(
                "With MONGODB_URI set, SECRET_KEYS is needed; make one with: coaching-service new-secret-key"
            )
        return replace(self, secret_keys=(_kept_key(self.data_dir / "secret.key"),))

    def vault(self) -> Vault:
        """The vault of the master keys. Raises SettingsError when one is malformed."""
        try:
            return Vault([parse_master_key(text) for text in self.secret_keys])
        except ValueError as error:
            raise SettingsError(str(error)) from None


def _kept_key(file: Path) -> str:
    """The key in `file`, made on the first start (mode 0600)."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return file.read_text().strip()
    with os.fdopen(handle, "w") as fresh:
        key = new_master_key()
        fresh.write(key + "\n")
        fresh.flush()
        os.fsync(fresh.fileno())
    return key

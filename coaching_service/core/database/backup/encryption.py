"""Encrypting what is stored of a backup, for keys that the machine which makes it does not have.

The format is age (age-encryption.org/v1): the program `age` can decrypt it without this service.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from coaching_service.core.database.backup.manifest import BackupError
from coaching_service.core.database.backup.stores import missing_extra

if TYPE_CHECKING:
    from pyrage import x25519

_PLAIN = "plain"


class Encryption:
    """Encrypts for `recipients`, public keys such as `age1...`; without one it changes nothing."""

    def __init__(self, recipients: Sequence[str]) -> None:
        self.recipients = tuple(sorted(set(recipients)))
        self._keys: list[x25519.Recipient] = []
        if not self.recipients:
            return
        _require_package()
        import pyrage

        try:
            self._keys = [pyrage.x25519.Recipient.from_str(each) for each in self.recipients]
        except pyrage.RecipientError:
            raise BackupError(
                "BACKUP_RECIPIENTS has a text that is no public key of age: make one with new-backup-key"
            ) from None

    @property
    def folder(self) -> str:
        """A name for what is encrypted for the same keys, so that no other is taken for it."""
        if not self.recipients:
            return _PLAIN
        return hashlib.sha256("\n".join(self.recipients).encode()).hexdigest()[:16]

    def encrypt(self, data: bytes) -> bytes:
        """Return `data` as it is stored."""
        if not self._keys:
            return data
        import pyrage

        return pyrage.encrypt(data, self._keys)


class Decryption:
    """Decrypts with the private keys in a file, as `age-keygen` and `new-backup-key` write it; without one, nothing."""

    def __init__(self, file: Path | None) -> None:
        self._keys: list[x25519.Identity] = []
        if file is None:
            return
        _require_package()
        import pyrage

        try:
            lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
            self._keys = [pyrage.x25519.Identity.from_str(line) for line in lines if line and line[0] != "#"]
        except OSError as error:
            raise BackupError(f"{file} cannot be read ({error.strerror})") from None
        except (pyrage.IdentityError, UnicodeDecodeError):
            raise BackupError(f"{file} is no file with private keys of age (AGE-SECRET-KEY-1...)") from None

    @property
    def has_keys(self) -> bool:
        """Whether a file with private keys was given."""
        return bool(self._keys)

    def can_decrypt(self, recipients: Sequence[str]) -> bool:
        """Return whether one of the keys decrypts what was encrypted for `recipients`, or nothing was encrypted."""
        return not recipients or bool({str(key.to_public()) for key in self._keys} & set(recipients))

    def require(self, recipients: Sequence[str]) -> None:
        """Raise BackupError if none of the keys decrypts what was encrypted for `recipients`."""
        if not self.can_decrypt(recipients):
            raise BackupError(
                f"The backup is encrypted for {', '.join(recipients)}: name the file with its private key with "
                "--identity"
            )

    def decrypt(self, name: str, data: bytes, recipients: Sequence[str]) -> bytes:
        """Return what was encrypted for `recipients`.

        Raises BackupError with the `name` of the file if it was changed, or is for other keys.
        """
        if not recipients:
            return data
        _require_package()
        import pyrage

        try:
            return pyrage.decrypt(data, self._keys)
        except pyrage.DecryptError:
            raise BackupError(f"{name} cannot be decrypted: it is damaged, or for another key") from None


def new_identity() -> tuple[str, str]:
    """Return a new private key and its public key."""
    _require_package()
    from pyrage import x25519

    identity = x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def _require_package() -> None:
    if find_spec("pyrage") is None:
        raise missing_extra()

"""Secrets: random tokens, their hashes, and authenticated encryption under rotatable master keys."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

API_KEY_PREFIX = "cs_ak_"
TEST_KEY_PREFIX = "cs_test_"
API_KEY_PREFIXES = (API_KEY_PREFIX, TEST_KEY_PREFIX)  # of keys of companies, and of their sandboxes
_NONCE = 12
_KEY_ID = 4


class SecretUnreadable(Exception):
    """No master key of this process can decrypt a sealed value."""


def new_token() -> str:
    """Return a secret of 256 random bits: 43 URL-safe characters."""
    return secrets.token_urlsafe(32)


def new_api_key(prefix: str = API_KEY_PREFIX) -> str:
    """Return a new API key: `prefix` and 43 URL-safe characters."""
    return prefix + new_token()


def token_hash(token: str) -> str:
    """Return the SHA-256 of a random token, hexadecimal, for storage. Never use it for passwords."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_master_key() -> str:
    """Return a new master key for the setting SECRET_KEYS: 32 random bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def parse_master_key(text: str) -> bytes:
    """Return the 32 bytes of a master key. Raises ValueError with a sentence for the operator."""
    try:
        key = base64.b64decode(text.strip(), altchars=b"-_", validate=True)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError("a secret key is 32 bytes in base64; make one with: coaching-service new-secret-key")
    return key


def fingerprint_of(sealed: bytes) -> str:
    """Return the fingerprint of the master key of `sealed`: it identifies the key and reveals nothing about it."""
    return sealed[:_KEY_ID].hex()


class _MasterKey:
    def __init__(self, key: bytes) -> None:
        self.id = hashlib.sha256(b"key id" + key).digest()[:_KEY_ID]
        self.cipher = AESGCM(self._derive(key, b"encrypt"))
        self.hash_key = self._derive(key, b"keyed hash")
        self.sign_key = self._derive(key, b"sign")

    @staticmethod
    def _derive(key: bytes, purpose: bytes) -> bytes:
        return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"coaching-service " + purpose).derive(key)


class Vault:
    """Encrypts, decrypts, hashes and signs with the master keys: the first (newest) one writes, all of them read."""

    def __init__(self, master_keys: Sequence[bytes]) -> None:
        if not master_keys:
            raise ValueError("at least one master key is needed")
        self._keys = [_MasterKey(key) for key in master_keys]

    def __repr__(self) -> str:
        return f"Vault({len(self._keys)} keys)"

    def seal(self, plain: bytes, bound_to: str) -> bytes:
        """Encrypt `plain` (AES-256-GCM) with `bound_to` as associated data: it decrypts only for the same record."""
        newest, nonce = self._keys[0], secrets.token_bytes(_NONCE)
        return newest.id + nonce + newest.cipher.encrypt(nonce, plain, bound_to.encode())

    def open(self, sealed: bytes, bound_to: str) -> bytes:
        """Decrypt what `seal` returned. Raises SecretUnreadable if no key fits or the data was changed."""
        key_id, nonce, body = sealed[:_KEY_ID], sealed[_KEY_ID : _KEY_ID + _NONCE], sealed[_KEY_ID + _NONCE :]
        for key in self._keys:
            if key.id == key_id:
                try:
                    return key.cipher.decrypt(nonce, body, bound_to.encode())
                except InvalidTag:
                    break
        fingerprint = fingerprint_of(sealed)
        raise SecretUnreadable(
            f"encrypted with the master key {fingerprint}, which is not in SECRET_KEYS; add it after the newest"
        )

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprints of the configured master keys, newest first."""
        return [key.id.hex() for key in self._keys]

    def has_key_for(self, sealed: bytes) -> bool:
        """Return whether the master key of `sealed` is configured."""
        return sealed[:_KEY_ID] in (key.id for key in self._keys)

    def is_current(self, sealed: bytes) -> bool:
        """Return whether `sealed` is encrypted with the newest master key."""
        return sealed[:_KEY_ID] == self._keys[0].id

    def keyed_hash(self, secret: str) -> str:
        """Return the HMAC-SHA-256 of a secret under the newest master key, hexadecimal, for lookups."""
        return self._hash(self._keys[0], secret)

    def keyed_hashes(self, secret: str) -> list[str]:
        """Return the keyed hash under every master key, newest first, for lookups during a key rotation."""
        return [self._hash(key, secret) for key in self._keys]

    def sign(self, text: str) -> str:
        """Return the signature of `text` (HMAC-SHA-256, base64url without padding)."""
        return self._sign(self._keys[0], text)

    def verify_signature(self, text: str, signature: str) -> bool:
        """Return whether `signature` is valid for `text`, compared in constant time."""
        given = signature.encode("utf-8", "surrogatepass")
        matches = [hmac.compare_digest(self._sign(key, text).encode(), given) for key in self._keys]
        return any(matches)

    def derive_text(self, purpose: str) -> str:
        """Return a secret derived from the oldest master key for `purpose` (the demo company's password)."""
        return self._sign(self._keys[-1], f"derive:{purpose}")[:24]

    @staticmethod
    def _hash(key: _MasterKey, secret: str) -> str:
        return hmac.digest(key.hash_key, secret.encode("utf-8", "surrogatepass"), "sha256").hex()

    @staticmethod
    def _sign(key: _MasterKey, text: str) -> str:
        digest = hmac.digest(key.sign_key, text.encode("utf-8", "surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

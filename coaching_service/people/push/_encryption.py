"""Messages of Web Push: encrypted for one browser (RFC 8291), and signed by this service (VAPID, RFC 8292)."""

from __future__ import annotations

import base64
import os
import struct
import time
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)

from coaching_service.people.push.models import BrowserKeys, decode_base64url

_RECORD_SIZE = 4096  # all push services take a message of one record of this size
_SALT_BYTES, _KEY_BYTES, _NONCE_BYTES, _SECRET_BYTES = 16, 16, 12, 32
_LAST_RECORD = b"\x02"
_TOKEN_SECONDS = 12 * 3600  # at most 24 hours are allowed


def new_private_key() -> bytes:
    """Return a new private key of VAPID (P-256), as PKCS #8."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def public_key_of(private_key: bytes) -> str:
    """Return the public key of a private one, as browsers take it: an uncompressed point in base64url."""
    return _encode(_point_of(_load(private_key).public_key()))


def encrypt(content: bytes, keys: BrowserKeys) -> bytes:
    """Return a message for one browser, with `Content-Encoding: aes128gcm`."""
    return encrypt_with(content, keys, ec.generate_private_key(ec.SECP256R1()), os.urandom(_SALT_BYTES))


def encrypt_with(content: bytes, keys: BrowserKeys, sender: ec.EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """Return `encrypt` with a key pair and a salt that are used for one message only."""
    receiver_point, sender_point = decode_base64url(keys["p256dh"]), _point_of(sender.public_key())
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver_point)
    shared = sender.exchange(ec.ECDH(), receiver)
    info = b"WebPush: info\x00" + receiver_point + sender_point
    secret = _derive(shared, decode_base64url(keys["auth"]), info, _SECRET_BYTES)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\x00", _KEY_BYTES)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\x00", _NONCE_BYTES)
    header = salt + struct.pack("!LB", _RECORD_SIZE, len(sender_point)) + sender_point
    return header + AESGCM(key).encrypt(nonce, content + _LAST_RECORD, None)


def authorization_of(endpoint: str, private_key: bytes, contact: str) -> str:
    """Return the header `Authorization` with which the service identifies itself to a push service.

    `contact` is a `mailto:` or `https:` address of the operator.
    """
    url = urlsplit(endpoint)
    claims = {"aud": f"{url.scheme}://{url.netloc}", "exp": int(time.time()) + _TOKEN_SECONDS, "sub": contact}
    key = _load(private_key)
    return f"vapid t={jwt.encode(claims, key, algorithm='ES256')}, k={_encode(_point_of(key.public_key()))}"


def _load(private_key: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_der_private_key(private_key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("a key of VAPID is one of P-256")
    return key


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def _point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

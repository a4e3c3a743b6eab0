"""A reader of ZIP archives that only reads forwards, as Java's ZipInputStream does: without the directory at the end."""

from __future__ import annotations

import struct
import zlib

_ENTRY, _DESCRIPTOR, _DIRECTORY = b"PK\x03\x04", b"PK\x07\x08", b"PK\x01\x02"
_DEFLATED = 8
_HAS_DESCRIPTOR = 0x8


def read_forwards(content: bytes) -> dict[str, bytes]:
    """The entries of an archive, by name. Sizes after an entry have 32 bits, since none is larger."""
    entries: dict[str, bytes] = {}
    at = 0
    while content[at : at + 4] == _ENTRY:
        flags, method, _, crc, packed, size, name_length, extra_length = struct.unpack(
            "<HHIIIIHH", content[at + 6 : at + 30]
        )
        name = content[at + 30 : at + 30 + name_length].decode()
        assert (method, flags & _HAS_DESCRIPTOR) == (_DEFLATED, _HAS_DESCRIPTOR), name
        inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        at += 30 + name_length + extra_length
        entries[name] = inflate.decompress(content[at:]) + inflate.flush()
        assert inflate.eof, name
        used = len(content) - at - len(inflate.unused_data)
        at += used
        signature, crc, packed, size = struct.unpack("<4sIII", content[at : at + 16])
        assert (signature, packed, size) == (_DESCRIPTOR, used, len(entries[name])), name
        assert crc == zlib.crc32(entries[name]), name
        at += 16
    assert content[at : at + 4] == _DIRECTORY, f"the entries end at {at}"
    return entries

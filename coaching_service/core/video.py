"""Videos: recognised by their content, and checked to be whole, without decoding them.

MP4 is ISO/IEC 14496-12 (a file of boxes, each with its size and type); WebM is EBML (RFC 8794) with the document type
`webm`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO

MP4, WEBM = "video/mp4", "video/webm"
VIDEO_TYPES = (MP4, WEBM)
_MP4_BRANDS = frozenset(
    {b"isom", b"iso2", b"iso3", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"dash", b"M4V "}
)
_OTHER_BRANDS = frozenset({b"qt  ", b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis", b"crx ", b"M4A "})
_EBML, _DOCUMENT_TYPE, _SEGMENT = b"\x1a\x45\xdf\xa3", b"\x42\x82\x84webm", b"\x18\x53\x80\x67"
_MAX_BOXES = 10_000


def recognise_video(head: bytes) -> str | None:
    """Return the content type of a file that begins with `head` (at least 100 bytes of it), or None for no video."""
    if head[4:8] == b"ftyp":
        length = int.from_bytes(head[:4], "big")
        brands = {head[8:12], *(head[at : at + 4] for at in range(16, min(length, len(head)), 4))}
        is_mp4 = head[8:12] not in _OTHER_BRANDS and bool(brands & _MP4_BRANDS)
        return MP4 if is_mp4 else None
    if head.startswith(_EBML) and _DOCUMENT_TYPE in head[:100]:
        return WEBM
    return None


def is_whole_video(file: IO[bytes], content_type: str) -> bool:
    """Return whether a video was stored to its end; the position in `file` changes."""
    size = file.seek(0, 2)
    if content_type == WEBM:
        return _is_whole_webm(file, size)
    boxes = dict(_boxes(file, size))
    return b"moov" in boxes and bool(boxes.keys() & {b"mdat", b"moof"}) and max(boxes.values()) == size


def _boxes(file: IO[bytes], size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the type of each box of an MP4 file and where it ends."""
    start = 0
    for _ in range(_MAX_BOXES):
        file.seek(start)
        header = file.read(16)
        if len(header) < 8:
            return
        length, kind = struct.unpack(">I4s", header[:8])
        if length == 1 and len(header) == 16:  # the size follows as 64 bits
            length = int.from_bytes(header[8:], "big")
        elif length == 0:  # to the end of the file
            length = size - start
        if length < 8:
            return
        start += length
        yield kind, start


def _is_whole_webm(file: IO[bytes], size: int) -> bool:
    """A segment states its size, unless it was recorded live: then its size is unknown and so is its end."""
    file.seek(0)
    head = file.read(4096)
    at = head.find(_SEGMENT)
    if at < 0 or (at := at + len(_SEGMENT)) >= len(head) or head[at] == 0:
        return False
    width = 9 - head[at].bit_length()
    stated = int.from_bytes(head[at : at + width], "big") & ((1 << 7 * width) - 1)
    is_unknown = stated == (1 << 7 * width) - 1
    return is_unknown or at + width + stated <= size

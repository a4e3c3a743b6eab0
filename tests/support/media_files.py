"""Small pictures and videos, made from their parts."""

from __future__ import annotations

import io
from collections.abc import Sequence

from PIL import Image

ISO6709 = b"+40.4168-003.7038/"


def picture(kind: str = "JPEG", size: tuple[int, int] = (60, 40), **options: object) -> bytes:
    """A picture of noise."""
    out = io.BytesIO()
    Image.effect_noise(size, 80).convert("RGB").save(out, kind, **options)
    return out.getvalue()


def animation(kind: str, frames: int = 3, size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    """A GIF, in shades of gray, or a WebP whose frames differ."""
    out = io.BytesIO()
    shades = [number * 50 % 256 for number in range(frames)]
    images = [
        Image.new("L", size, shade) if kind == "GIF" else Image.new("RGB", size, (shade, 90, 200)) for shade in shades
    ]
    images[0].save(out, kind, save_all=True, append_images=images[1:], duration=80, loop=0, **options)
    return out.getvalue()


def box(name: bytes, *content: bytes, large: bool = False) -> bytes:
    """A box of an MP4 file; `large` uses the 64-bit size."""
    joined = b"".join(content)
    if large:
        return (1).to_bytes(4, "big") + name + (len(joined) + 16).to_bytes(8, "big") + joined
    return (len(joined) + 8).to_bytes(4, "big") + name + joined


def track(handler: bytes = b"vide", *extra: bytes, name: bytes = b"", compressor: bytes = b"") -> bytes:
    """A track of an MP4 file, `extra` at its end; with the names of its handler and of its compressor."""
    kind = box(b"hdlr", bytes(8), handler, bytes(12), name, b"\0")
    length = bytes([len(compressor)])
    sample = box(b"avc1", bytes(42), (length + compressor).ljust(32, b"\0"), bytes(4), box(b"avcC", b"abc"))
    described = box(b"stbl", box(b"stsd", bytes(4), _number(1), sample)) if compressor else b""
    media = box(b"mdia", box(b"mdhd", bytes(24)), kind, box(b"minf", described))
    return box(b"trak", box(b"tkhd", bytes(84)), media, *extra)


def sampled_track(handler: bytes, chunks: Sequence[tuple[int, Sequence[int]]], *, large: bool = False) -> bytes:
    """A track whose tables say where its samples are: where each chunk begins, and the sizes of its samples."""
    sizes = [size for _, samples in chunks for size in samples]
    same = sizes[0] if len(set(sizes)) == 1 else 0
    tables = box(
        b"stbl",
        box(b"stsd", bytes(8)),
        box(b"stsz", _numbers(0, same, len(sizes), *([] if same else sizes))),
        box(
            b"stsc",
            _numbers(
                0, len(chunks), *(each for i, (_, samples) in enumerate(chunks) for each in (i + 1, len(samples), 1))
            ),
        ),
        box(
            b"co64" if large else b"stco",
            _numbers(0, len(chunks)),
            *(_number(at, 8 if large else 4) for at, _ in chunks),
        ),
    )
    kind = box(b"hdlr", bytes(4), b"mhlr", handler, bytes(12), b"\0")
    return box(b"trak", box(b"tkhd", bytes(84)), box(b"mdia", box(b"mdhd", bytes(24)), kind, box(b"minf", tables)))


def _number(value: int, length: int = 4) -> bytes:
    return value.to_bytes(length, "big")


def _numbers(*values: int) -> bytes:
    return b"".join(map(_number, values))


MOV_DATA = 36  # where the media data of `mov` begins


def mov(
    data: bytes, *tracks: bytes, moov: Sequence[bytes] = (), brand: bytes = b"qt  ", end: Sequence[bytes] = ()
) -> bytes:
    """A QuickTime file as phones write it: the media data first, then the tracks."""
    head = box(b"ftyp", brand, bytes(4), brand) + box(b"wide") + box(b"mdat", data)
    return b"".join([head, box(b"moov", box(b"mvhd", bytes(100)), *tracks, *moov), *end])


def mp4(
    *tracks: bytes,
    brand: bytes = b"isom",
    compatible: bytes = b"",
    moov: Sequence[bytes] = (),
    end: Sequence[bytes] = (),
    data: bytes = b"abc",
) -> bytes:
    """An MP4 file; `moov` are boxes at the end of that box, and `end` boxes at the end of the file."""
    head = box(b"ftyp", brand, bytes(4), compatible)
    body = box(b"moov", box(b"mvhd", bytes(100)), *(tracks or (track(), track(b"soun"))), *moov)
    return b"".join([head, body, box(b"mdat", data), *end])


def element(name: bytes, *content: bytes, size: bytes | None = None) -> bytes:
    """An element of a WebM file; `size` overrides the encoded size."""
    joined = b"".join(content)
    return name + (size or (len(joined) | 1 << 28).to_bytes(4, "big")) + joined


EBML, SEGMENT, INFO = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x15\x49\xa9\x66"
TRACKS, CLUSTER, TAGS = b"\x16\x54\xae\x6b", b"\x1f\x43\xb6\x75", b"\x12\x54\xc3\x67"
UNKNOWN_SIZE = b"\x01" + b"\xff" * 7
LOCATION_TAG = element(
    TAGS, element(b"\x73\x73", element(b"\x67\xc8", element(b"\x45\xa3", b"LOCATION"), element(b"\x44\x87", ISO6709)))
)


def webm(
    *kinds: int,
    doc_type: bytes = b"webm",
    info: Sequence[bytes] = (),
    extra: Sequence[bytes] = (),
    live: bool = False,
    data: bytes = b"abc",
    track_name: bytes = b"",
) -> bytes:
    """A WebM file with tracks of these kinds (1 picture, 2 sound); `live`: sizes are unknown, as in a recording.

    `info` are elements of the general information, `extra` elements at the end.
    """
    name = element(b"\x53\x6e", track_name) if track_name else b""
    tracks = [
        element(b"\xae", element(b"\xd7", b"\x01"), element(b"\x83", bytes([kind])), name) for kind in kinds or (1, 2)
    ]
    block = element(b"\xe7", b"\0") + element(b"\xa3", b"\x81\0\0\0" + data)
    cluster = element(CLUSTER, block, size=UNKNOWN_SIZE if live else None)
    content = [
        element(INFO, element(b"\x2a\xd7\xb1", b"\x0f\x42\x40"), *info),
        element(TRACKS, *tracks),
        cluster,
        *extra,
    ]
    head = element(EBML, element(b"\x42\x82", doc_type))
    return head + element(SEGMENT, *content, size=UNKNOWN_SIZE if live else None)


def pixel(image: Image.Image, place: tuple[int, int]) -> tuple[int, ...]:
    """The channels of a pixel of a picture with several."""
    channels = image.getpixel(place)
    assert isinstance(channels, tuple)
    return channels


def extremes(image: Image.Image) -> tuple[float, float]:
    """The smallest and the largest value of a picture with one channel."""
    smallest, largest = image.getextrema()
    assert not isinstance(smallest, tuple) and not isinstance(largest, tuple)
    return smallest, largest

"""The program of the image worker process, which `media.ImageProcessor` starts: decodes and encodes images.

It is run by its path and imports nothing of the service. A request is one JSON object on a socket, with three open
files: the image, and two empty ones for the rewritten image and its thumbnail. A reply is one JSON object.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from collections.abc import Sequence
from typing import IO

from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

THUMBNAIL_SIDE = 320
MAX_SIDE = 4096
MAX_MESSAGE_BYTES = 4096

Image.MAX_IMAGE_PIXELS = None  # `rewrite` has its own limit, which it checks before decoding


def main(connection: socket.socket) -> None:
    """Serve one request after another until the connection closes."""
    while True:
        message, files, _, _ = socket.recv_fds(connection, MAX_MESSAGE_BYTES, 3)
        if not message:
            return
        source, image, thumbnail = (os.fdopen(file, "r+b") for file in files)
        with source, image, thumbnail:
            request = json.loads(message)
            try:
                reply = {"format": rewrite(source, image, thumbnail, request["formats"], request["pixels"])}
            except Exception as error:  # noqa: BLE001 - decoders fail with any exception on broken files
                reply = {"error": _ERRORS.get(type(error), "broken")}
        connection.sendall(json.dumps(reply).encode())


class TooManyPixels(Exception):
    """The image has more pixels than the limit."""


_ERRORS: dict[type[Exception], str] = {TooManyPixels: "pixels", UnidentifiedImageError: "type"}


def rewrite(source: IO[bytes], image: IO[bytes], thumbnail: IO[bytes], formats: Sequence[str], max_pixels: int) -> str:
    """Write the picture in `source` to `image`, and a JPEG of at most 320 x 320 pixels to `thumbnail`.

    Returns its format. The copy is upright, in sRGB and holds nothing but pixels: no EXIF, no location, no comments,
    no further frames. Raises TooManyPixels, and any other exception if the source is not a complete picture of one of
    the `formats`.
    """
    source.seek(0)
    with Image.open(source, formats=list(formats)) as picture:
        format_name = str(picture.format)
        if picture.width * picture.height > max_pixels:
            raise TooManyPixels
        picture.draft("RGB", (MAX_SIDE, MAX_SIDE))  # decodes a JPEG no larger than it is stored
        picture.load()
        ImageOps.exif_transpose(picture, in_place=True)
        converted = _to_8_bit_srgb(picture)
        converted.info.clear()
        converted.thumbnail((MAX_SIDE, MAX_SIDE))
        converted.save(image, format_name, **({"quality": 90} if format_name in ("JPEG", "WEBP") else {}))
        converted.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
        _on_white(converted).save(thumbnail, "JPEG", quality=80)
        return format_name


def _to_8_bit_srgb(picture: Image.Image) -> Image.Image:
    """Returns the picture as grey, RGB or RGBA with 8 bits a channel, in sRGB."""
    profile = picture.info.get("icc_profile")
    if picture.mode.startswith("I;16"):
        return picture.point(lambda value: value * (1 / 256)).convert("L")
    mode = "RGBA" if picture.has_transparency_data else "L" if picture.mode in ("1", "L") else "RGB"
    if profile and picture.mode in ("RGB", "RGBA", "CMYK"):
        try:
            return _apply_profile(picture, profile, mode)
        except (ImageCms.PyCMSError, OSError, ValueError):  # the profile is broken or of another colour space
            pass
    return picture if picture.mode == mode else picture.convert(mode)


def _apply_profile(picture: Image.Image, profile: bytes, mode: str) -> Image.Image:
    source_profile = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    in_place = picture.mode == mode
    converted = ImageCms.profileToProfile(
        picture, source_profile, ImageCms.createProfile("sRGB"), outputMode=None if in_place else mode, inPlace=in_place
    )
    return picture if converted is None else converted


def _on_white(picture: Image.Image) -> Image.Image:
    if picture.mode != "RGBA":
        return picture
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))

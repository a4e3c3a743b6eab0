"""Pictures as phones make them: several pictures in a JPEG, HEIC, and more pixels than are stored."""

from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from PIL import Image
from pillow_heif import register_heif_opener

from coaching_service.core.media_worker import rewrite_picture
from tests.core.test_uploads import add, fetch, stored
from tests.support.client import CoachClient
from tests.support.media_files import extremes

register_heif_opener()

_TURNED = 0x0112, 6  # to be turned by a quarter
_LOCATION = 0x8825
PARK = b"Retiro"


@pytest.fixture
async def customer(coach: CoachClient) -> dict[str, Any]:
    """A client."""
    return await coach.create_customer()


@pytest.fixture
def ana(customer: Mapping[str, Any]) -> str:
    """A client's path."""
    return f"/coach/customers/{customer['_id']}"


def gradient(size: tuple[int, int]) -> Image.Image:
    """A picture that is red on the left and blue on the right."""
    left, right = (Image.new("RGB", (size[0] // 2, size[1]), color) for color in ("red", "blue"))
    picture = Image.new("RGB", size)
    picture.paste(left, (0, 0))
    picture.paste(right, (size[0] // 2, 0))
    return picture


def exif() -> Image.Exif:
    """Metadata with an orientation, a location and a text."""
    metadata = Image.Exif()
    metadata[_TURNED[0]] = _TURNED[1]
    metadata[0x010E] = PARK.decode()
    metadata.get_ifd(_LOCATION)[2] = (48.0, 12.0, 30.0)
    return metadata


def saved(kind: str, picture: Image.Image, **options: Any) -> bytes:
    """A picture as a file."""
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def with_second(second: Image.Image) -> bytes:
    """A JPEG with two pictures: the first is red and blue."""
    return saved("MPO", gradient((80, 40)), save_all=True, append_images=[second], exif=exif())


def heic(picture: Image.Image, **options: Any) -> bytes:
    """A HEIC file with the same metadata, which says in its own words that it is to be turned."""
    picture.info["exif"] = exif().tobytes()
    return saved("HEIF", picture, quality=90, **options)


def with_size(content: bytes, size: tuple[int, int]) -> bytes:
    """A JPEG that says that it has this size."""
    start = re.search(rb"\xff[\xc0\xc2]\x00.\x08", content, re.DOTALL)
    assert start is not None
    return content[: start.end()] + struct.pack(">HH", *reversed(size)) + content[start.end() + 4 :]


PHONE_PICTURES = {
    "two pictures of one size": with_second(Image.new("RGB", (80, 40), "green")),
    "a smaller grey picture, as of brightness or depth": with_second(Image.new("L", (20, 10), 90)),
    "HEIC": heic(gradient((80, 40))),
    "HEIC with alpha": heic(gradient((80, 40)).convert("RGBA")),
    "HEIC with two pictures": heic(
        gradient((80, 40)), save_all=True, append_images=[Image.new("RGB", (80, 40), "green")]
    ),
}


@pytest.mark.parametrize("case", PHONE_PICTURES)
async def test_first_picture_is_stored_upright_without_metadata(coach: CoachClient, ana: str, case: str) -> None:
    content = PHONE_PICTURES[case]
    assert PARK in content
    urls = (await add(coach, ana, content)).ok(201)["photos"]

    reply = await fetch(coach, urls["frontUrl"])
    assert reply.headers["Content-Type"] == "image/jpeg"
    shown = Image.open(io.BytesIO(reply.raw))
    assert (shown.format, shown.size, dict(shown.getexif())) == ("JPEG", (40, 80), {})
    assert PARK not in reply.raw
    red, _, blue = shown.convert("RGB").split()
    above, below = (0, 0, 40, 30), (0, 50, 40, 80)
    assert extremes(red.crop(above))[0] > 200 > extremes(red.crop(below))[1] + 100, "red was on the left"
    assert extremes(blue.crop(below))[0] > 200 > extremes(blue.crop(above))[1] + 100
    small = Image.open(io.BytesIO((await fetch(coach, urls["frontThumbnailUrl"])).raw))
    assert small.size == (40, 80)


async def test_every_upload_accepts_a_jpeg_with_two_pictures(coach: CoachClient, customer: dict[str, Any]) -> None:
    ana = f"/coach/customers/{customer['_id']}"
    client = await coach.as_client(customer)
    exercise = (await coach.send("POST", "/exercises", json={"name": "Squat"})).ok(201)
    photo = (await add(coach, ana, None)).ok(201)
    uploads: list[tuple[CoachClient, str, str, str, dict[str, str]]] = [
        (coach, "PUT", f"{ana}/progress-photos/{photo['_id']}", "imageFile", {"imageSideIndex": "1"}),
        (coach, "PUT", f"{ana}/profile-photo", "profilePhotoFile", {}),
        (coach, "POST", f"{ana}/nutrition-plans", "file", {}),
        (coach, "POST", f"{ana}/messages/attachments", "file", {}),
        (coach, "POST", f"/exercises/{exercise['_id']}/media", "file", {}),
        (client, "PUT", "/customer/me/profile-photo", "profilePhotoFile", {}),
        (client, "POST", "/customer/progress-photos", "imageFile", {"createdAt": "2026-03-02", "imageSideIndex": "2"}),
        (client, "POST", "/customer/messages/attachments", "file", {}),
    ]
    for sender, method, path, field, texts in uploads:
        data = aiohttp.FormData(default_to_multipart=True)
        data.add_field(field, io.BytesIO(PHONE_PICTURES["two pictures of one size"]), filename="me.jpg")
        for name, text in texts.items():
            data.add_field(name, text)
        reply = await sender.send(method, path, data=data)
        assert reply.status in (200, 201), (path, reply.raw)
        assert "image/jpeg" in json.dumps(reply.json) or "Url" in json.dumps(reply.json), path


@pytest.mark.parametrize(
    "content", [PHONE_PICTURES["HEIC"][:-200], PHONE_PICTURES["HEIC"][:40], b"\0\0\0\x18ftypheic" + bytes(500)]
)
async def test_broken_heic_is_rejected(coach: CoachClient, ana: str, content: bytes) -> None:
    (await add(coach, ana, content)).refused(400)
    assert await stored(coach) == (0, 0)


@pytest.mark.parametrize(
    ("size", "options", "stored_size"),
    [
        ((8160, 6120), {}, (4080, 3060)),
        ((6120, 8160), {}, (3060, 4080)),
        ((7000, 100), {}, (4096, 59)),
        ((8400, 5000), {"progressive": True}, (4096, 2438)),
    ],
)
def test_large_jpeg_is_scaled_down(
    size: tuple[int, int], options: dict[str, Any], stored_size: tuple[int, int]
) -> None:
    source = io.BytesIO(saved("JPEG", Image.new("L", size, 200), quality=30, **options))
    image, thumbnail = io.BytesIO(), io.BytesIO()
    stored_as = rewrite_picture(
        source, image, thumbnail, formats=["JPEG"], pixels=50_000_000, jpeg_pixels=400_000_000, animated=False
    )
    assert (stored_as, Image.open(image).size) == ("JPEG", stored_size)
    assert max(Image.open(thumbnail).size) == 320


async def test_photo_of_200_megapixels_is_accepted(coach: CoachClient, ana: str) -> None:
    content = saved("JPEG", Image.new("L", (16_384, 12_288), 200), quality=30)
    urls = (await add(coach, ana, content)).ok(201)["photos"]
    assert Image.open(io.BytesIO((await fetch(coach, urls["frontUrl"])).raw)).size == (4096, 3072)


@pytest.mark.parametrize(
    ("size", "options"),
    [((8000, 6300), {"progressive": True}), ((24_000, 20_000), {})],
    ids=["progressive", "baseline"],
)
async def test_jpeg_that_needs_too_much_memory_is_rejected(
    coach: CoachClient, ana: str, size: tuple[int, int], options: dict[str, Any]
) -> None:
    content = with_size(saved("JPEG", Image.new("L", (80, 60), 200), **options), size)
    error = (await add(coach, ana, content)).refused(400, "pixels")["errors"][0]
    assert error["code"] == "TOO_MANY_PIXELS"
    assert "50000000 pixels, or 400000000 as a JPEG" in error["message"]

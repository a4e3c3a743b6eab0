"""Malformed and unusual uploads, pictures and downloads."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image, ImageCms, ImageOps

from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MediaWorker
from coaching_service.core.temporary_files import open_temporary
from tests.core.test_uploads import PDF, add, fetch, picture, stored
from tests.support.client import CoachClient
from tests.support.media_files import pixel
from tests.support.pdf_files import make_pdf

pytestmark = pytest.mark.filterwarnings("ignore::aiohttp.BadContentDispositionHeader")
FILE = b'form-data; name="file"; filename="plan.pdf"'
END = b"--B--\r\n"


def part(disposition: bytes, content: bytes = PDF, more: bytes = b"") -> bytes:
    return b"--B\r\nContent-Disposition: " + disposition + b"\r\n" + more + b"\r\n" + content + b"\r\n"


@pytest.fixture
async def ana(coach: CoachClient) -> str:
    """A client's path."""
    return f"/coach/customers/{(await coach.create_customer())['_id']}"


async def send(coach: CoachClient, ana: str, body: bytes, kind: str = "multipart/form-data; boundary=B") -> Any:
    return await coach.send("POST", f"{ana}/nutrition-plans", data=io.BytesIO(body), headers={"Content-Type": kind})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"hello\r\n" + part(FILE) + END + b"bye", 201),
        (part(b"attachment; name=file; filename=plan.pdf") + END, 201),
        (part(b'form-data; name="' + b"x" * 7000 + b'"', b"1") + part(FILE) + END, 201),
        (part(FILE, PDF, b"Content-Length: 3\r\nContent-Type: text/html\r\n") + END, 201),
        (part(FILE), 400),
        (part(FILE) + part(FILE) + END, 400),
        (part(b'form-data; name="' + b"x" * 20_000 + b'"', b"1") + part(FILE) + END, 400),
        (part(FILE, PDF, b"".join(b"X-%d: 1\r\n" % each for each in range(200))) + END, 400),
        (part(b'form-data; name="_charset_"', b"u" * 100) + part(FILE) + END, 400),
        (part(FILE, b"JVBERi0=", b"Content-Transfer-Encoding: base64\r\n") + END, 400),
        (part(FILE, b"--C\r\n\r\nx\r\n--C--", b"Content-Type: multipart/mixed; boundary=C\r\n") + END, 400),
        (b"".join(part(b'form-data; name="x%d"' % each, b"1") for each in range(30)) + part(FILE) + END, 400),
        (part(FILE, b"<html>%PDF-1.4 %%EOF</html>") + END, 400),
        (part(FILE, b"") + END, 400),
        (b"".join(part(b"form-data; name=x", b"1" * 600_000) for _ in range(2)) + part(FILE) + END, 413),
        (part(b'form-data; filename="plan.pdf"') + END, 400),
        (part(b"form-data; name=file; ;;") + END, 400),
        (part(b'form-data; name="file"; filename=""', b"") + END, 500),
        (END, 500),
    ],
)
async def test_multipart_body_is_parsed_or_rejected(coach: CoachClient, ana: str, body: bytes, status: int) -> None:
    """500 is the documented status of an upload without `file`."""
    reply = await send(coach, ana, body)
    assert reply.status == status
    assert status != 500 or reply.json["code"] == "NUTRITION_PLAN_FILE_MISSING"
    assert await stored(coach) == (1 if status == 201 else 0, 0)


@pytest.mark.parametrize("kind", ["", "; boundary=", "; boundary=C", "; boundary=" + "B" * 100])
async def test_multipart_boundary_is_required(coach: CoachClient, ana: str, kind: str) -> None:
    (await send(coach, ana, part(FILE) + END, f"multipart/form-data{kind}")).refused(400)


@pytest.mark.parametrize(
    ("sent", "stored_name"),
    [
        ("Mäh – 💪.pdf".encode(), "Mäh – 💪.pdf"),
        (b'a\\"b.pdf', 'a"b.pdf'),
        (b"a%22b%0d%0aX-Evil: 1.pdf", 'a"b  X-Evil: 1.pdf'),
        ("Mäh.pdf".encode("latin-1"), "M h.pdf"),
        (b"../../etc/passwd", "passwd"),
        ("\u202efdp.exe".encode(), "fdp.exe"),
        (b"x" * 3000, "x" * 200),
        (b"..", "plan"),
        (b"/", "plan"),
    ],
)
async def test_file_name_is_sanitized(coach: CoachClient, ana: str, sent: bytes, stored_name: str) -> None:
    plan = (await send(coach, ana, part(b'form-data; name="file"; filename="' + sent + b'"') + END)).ok(201)
    assert plan["fileName"] == stored_name
    got = await fetch(coach, plan["url"])
    assert got.raw == PDF
    assert "X-Evil" not in got.headers


# --- pictures ------------------------------------------------------------------------------------------------------


async def shown(coach: CoachClient, ana: str, file: bytes) -> tuple[Image.Image, Image.Image]:
    """Upload a picture and return it and its thumbnail as downloaded."""
    photos = (await add(coach, ana, file)).ok(201)["photos"]
    image, small = [await fetch(coach, photos[name]) for name in ("frontUrl", "frontThumbnailUrl")]
    return Image.open(io.BytesIO(image.raw)), Image.open(io.BytesIO(small.raw))


def written(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


@pytest.mark.parametrize("orientation", range(1, 9))
async def test_photo_is_rotated_by_its_exif_orientation(coach: CoachClient, ana: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    original = Image.new("RGB", (64, 32), "white")
    original.paste((255, 0, 0), (0, 0, 16, 16))
    for kind in ("JPEG", "PNG", "WEBP"):
        file = written(original, kind, exif=exif)
        image, small = await shown(coach, ana, file)
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
        assert image.size == small.size == upright.size
        assert _red_corner(image) == _red_corner(small) == _red_corner(upright)
        assert not image.getexif()


def _red_corner(image: Image.Image) -> tuple[bool, bool]:
    plain = image.convert("RGB")
    corners = [(right, low) for right in (False, True) for low in (False, True)]
    at = {(right, low): (plain.width - 3 if right else 2, plain.height - 3 if low else 2) for right, low in corners}
    [red] = [corner for corner, place in at.items() if pixel(plain, place)[1] < 100]
    return red


async def test_unusual_picture_modes_are_converted(coach: CoachClient, ana: str) -> None:
    deep = Image.new("I;16", (256, 4))
    deep.putdata([each * 257 for each in range(256)] * 4)
    image, _ = await shown(coach, ana, written(deep, "PNG"))
    assert [image.getpixel((each, 1)) for each in (0, 64, 128, 255)] == [0, 64, 128, 255]

    printed = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    image, _ = await shown(coach, ana, written(printed, "JPEG"))
    red, green_, _blue = pixel(image, (4, 4))
    assert (red > 250, green_ < 5) == (True, True)

    clear = Image.new("RGB", (8, 8), "red")
    image, small = await shown(coach, ana, written(clear, "PNG", transparency=(255, 0, 0)))
    assert (pixel(image, (4, 4))[3], pixel(small, (4, 4))) == (0, (255, 255, 255))

    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    for kind in ("PNG", "WEBP"):
        image, _ = await shown(coach, ana, written(frames[0], kind, save_all=True, append_images=frames[1:]))
        assert (getattr(image, "n_frames", 1), pixel(image.convert("RGB"), (4, 4))[0] > 250) == (1, True)

    green = Image.new("RGB", (8, 8), (10, 200, 30))
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    for profile in (srgb, b"rubbish" * 20):
        image, _ = await shown(coach, ana, written(green, "PNG", icc_profile=profile))
        assert (pixel(image, (4, 4)), image.info.get("icc_profile")) == ((10, 200, 30), None)


async def test_image_process_is_restarted_after_it_is_killed(coach: CoachClient, ana: str) -> None:
    (await add(coach, ana, picture())).ok(201)
    helper = coach.ctx.services.media_worker._process
    assert helper is not None
    helper.kill()
    helper.wait()
    (await add(coach, ana, picture("PNG"))).refused(503)
    (await add(coach, ana, picture("PNG"))).ok(201)
    assert await stored(coach) == (2, 0)


async def test_image_process_has_no_secrets_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It decodes what strangers send; the environment of the service has its master keys."""
    monkeypatch.setenv("SECRET_KEYS", "the-master-key")
    monkeypatch.setenv("MONGODB_URI", "mongodb://user:password@db")
    images = MediaWorker()
    with open_temporary("picture") as file:
        file.write(picture())
        (await images.rewrite_picture(file, ("image/jpeg",), 10_000)).close()
    assert images._process is not None
    environment = await asyncio.to_thread(Path(f"/proc/{images._process.pid}/environ").read_bytes)
    images.close()
    assert {each.partition(b"=")[0] for each in environment.split(b"\0")} <= {b"LANG", b"LD_LIBRARY_PATH", b""}


# --- downloads -----------------------------------------------------------------------------------------------------


async def test_download_honours_conditional_and_range_headers(coach: CoachClient, ana: str) -> None:
    link = (await send(coach, ana, part(FILE) + END)).ok(201)["url"]
    tag = (await fetch(coach, link)).headers["ETag"]
    for known, status in ((tag, 304), (f"W/{tag}", 304), ("*", 304), (f'"x", {tag}', 304), (f'"x{tag[1:]}', 200)):
        assert (await fetch(coach, link, **{"If-None-Match": known})).status == status
    for unsatisfiable in ("bytes=-0", f"bytes={len(PDF)}-"):
        assert (await fetch(coach, link, Range=unsatisfiable)).status == 416
    assert (await fetch(coach, link, Range="bytes=5-2")).status == 200, "an invalid range is ignored (RFC 9110, 14.2)"
    assert (await fetch(coach, link, Range="bytes=" + "9" * 6000 + "-")).status == 200
    assert (await fetch(coach, link.replace("expires=", "expires=0"))).status == 403


async def test_truncated_file_breaks_the_connection(coach: CoachClient, ana: str) -> None:
    """A download whose chunks are deleted while it is sent breaks the connection instead of ending early."""
    plan = (await send(coach, ana, part(FILE, make_pdf(size=9_000_000)) + END)).ok(201)
    [file] = await coach.ctx.db["fs.files"].distinct("_id", {"companyId": coach.ctx.company_id})
    await coach.ctx.db["fs.chunks"].delete_many({"files_id": ObjectId(file), "n": {"$gt": 5}})
    with pytest.raises(aiohttp.ClientError):
        await fetch(coach, plan["url"])

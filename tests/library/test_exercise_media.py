"""Uploaded pictures and videos of exercises: what is accepted, what is removed from them, and how they are served."""

from __future__ import annotations

import io
from typing import Any
from zlib import crc32

import pytest
from PIL import Image

from coaching_service.core import media
from tests.core.test_uploads import PDF, fetch, form, stored
from tests.support.client import UNKNOWN, CoachClient
from tests.support.media_files import INFO, ISO6709, LOCATION_TAG, animation, box, element, mp4, picture, track, webm
from tests.support.sampled import proof
from tests.support.training import Json


@pytest.fixture
async def exercise(coach: CoachClient) -> Json:
    return await coach.create_exercise("Garage Squat")


@pytest.fixture
async def shared(coach: CoachClient) -> Json:
    page = (await coach.get("/exercises/unified", pageSize=1, pageNum=1, keywords="goblet squat", type="public")).ok()
    shared_exercise: Json = page["docs"][0]
    return shared_exercise


async def upload(coach: CoachClient, exercise: Json, file: bytes | None, name: str = "me.jpg", **texts: str) -> Any:
    data = form(file, "file", name, **texts)
    return await coach.send("POST", f"/exercises/{exercise['_id']}/media", data=data)


async def read(coach: CoachClient, exercise: Json) -> Json:
    read_exercise: Json = (await coach.get(f"/exercises/{exercise['_id']}")).ok()
    return read_exercise


FILES = {
    "image/jpeg": (picture("JPEG"), "image", ".jpg"),
    "image/png": (picture("PNG"), "image", ".png"),
    "image/webp": (picture("WEBP"), "image", ".webp"),
    "image/gif": (animation("GIF"), "gif", ".gif"),
    "video/mp4": (mp4(), "video", ".mp4"),
    "video/webm": (webm(), "video", ".webm"),
}


@pytest.mark.parametrize("content_type", FILES)
async def test_file_is_recognised_by_content_and_served_sandboxed(
    coach: CoachClient, exercise: Json, content_type: str
) -> None:
    content, media_type, ending = FILES[content_type]
    entry = (await upload(coach, exercise, content, "squat.txt")).ok(201)

    assert (entry["type"], entry["source"]) == (media_type, "upload")
    assert entry["key"].endswith(ending)
    assert (entry["thumbnailUrl"] is None) is (media_type == "video")
    [read_entry] = (await read(coach, exercise))["media"]
    assert read_entry.keys() == {"_id", "type", "key", "source", "url", "thumbnailUrl"}
    assert read_entry["_id"] == entry["_id"]
    served = await fetch(coach, read_entry["url"])
    assert (served.status, served.headers["Content-Type"]) == (200, content_type)
    assert served.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in served.headers["Content-Security-Policy"]
    assert served.headers["Content-Disposition"].startswith("inline")
    part = await fetch(coach, read_entry["url"], Range="bytes=4-7")
    assert (part.status, part.raw) == (206, served.raw[4:8])


async def test_links_are_made_on_read_and_not_stored(coach: CoachClient, exercise: Json) -> None:
    entry = (await upload(coach, exercise, picture())).ok(201)
    document = await coach.ctx.db["exercises"].find_one({"media.key": entry["key"]})
    assert document is not None
    assert "signature" not in str(document)
    after = await read(coach, exercise)
    assert "signature=" in after["image"]
    assert after["image"] == after["media"][0]["url"]
    assert after["thumbnail"] == after["media"][0]["thumbnailUrl"]
    thumbnail = Image.open(io.BytesIO((await fetch(coach, after["thumbnail"])).raw))
    assert thumbnail.format == "JPEG"


async def test_own_exercise_changes_its_version_with_an_upload(coach: CoachClient, exercise: Json) -> None:
    (await upload(coach, exercise, picture())).ok(201)
    assert (await read(coach, exercise))["version"] == exercise["version"] + 1
    (await coach.patch(f"/exercises/{exercise['_id']}", {"name": "x", "version": 0})).refused(409)


async def test_media_is_deleted_with_its_file(coach: CoachClient, exercise: Json) -> None:
    remaining = (await upload(coach, exercise, mp4())).ok(201)
    entry = (await upload(coach, exercise, picture())).ok(201)
    assert await stored(coach) == (3, 0)

    (await coach.delete(f"/exercises/{exercise['_id']}/media/{entry['_id']}")).ok(204)

    assert await stored(coach) == (1, 0)
    assert [each["_id"] for each in (await read(coach, exercise))["media"]] == [remaining["_id"]]
    assert (await fetch(coach, entry["url"])).status == 404
    (await coach.delete(f"/exercises/{exercise['_id']}/media/{entry['_id']}")).refused(404, "Exercise media")


async def test_link_is_deleted_like_an_upload(coach: CoachClient) -> None:
    linked = await coach.create_exercise("Sled", media=[{"type": "link", "url": "https://sled.example"}])
    (await coach.delete(f"/exercises/{linked['_id']}/media/{linked['media'][0]['_id']}")).ok(204)
    assert (await read(coach, linked))["media"] == []


async def test_change_of_links_leaves_uploads(coach: CoachClient, exercise: Json) -> None:
    uploaded = (await upload(coach, exercise, mp4())).ok(201)
    path = f"/exercises/{exercise['_id']}"
    link = {"type": "link", "url": "https://squat.example"}

    linked = (await coach.patch(path, {"media": [link]})).ok()
    assert [each["source"] for each in linked["media"]] == [None, "upload"]

    swapped = (await coach.patch(path, {"media": linked["media"][::-1]})).ok()
    assert [each["_id"] for each in swapped["media"]] == [each["_id"] for each in linked["media"]][::-1]
    assert "signature" not in str(await coach.ctx.db["exercises"].find_one({"media.key": uploaded["key"]}))

    emptied = (await coach.patch(path, {"media": []})).ok()
    assert [each["_id"] for each in emptied["media"]] == [uploaded["_id"]]
    assert (await fetch(coach, emptied["media"][0]["url"])).status == 200


async def test_shared_exercise_shows_uploads_to_their_company_only(
    coach: CoachClient, other_company: CoachClient, shared: Json
) -> None:
    entry = (await upload(coach, shared, picture())).ok(201)
    assert [each["_id"] for each in (await read(coach, shared))["media"]] == [entry["_id"]]
    assert (await read(other_company, shared)) == shared
    path = f"/exercises/{shared['_id']}/media/{entry['_id']}"
    (await other_company.delete(path)).refused(404, "Exercise media")

    (await coach.delete(path)).ok(204)

    assert (await read(coach, shared))["media"] == []
    assert await stored(coach) == (0, 0)


async def test_upload_needs_a_file_and_an_exercise_of_the_company(
    coach: CoachClient, other_company: CoachClient, exercise: Json
) -> None:
    (await upload(coach, exercise, None)).refused(400, "file")
    (await upload(coach, {"_id": UNKNOWN}, picture())).refused(404, "Exercise")
    (await upload(other_company, exercise, picture())).refused(404, "Exercise")
    assert await stored(coach) == await stored(other_company) == (0, 0)


async def test_exercise_has_at_most_20_uploads(coach: CoachClient, exercise: Json) -> None:
    for _ in range(20):
        (await upload(coach, exercise, webm())).ok(201)
    (await upload(coach, exercise, webm())).refused(400, "20")
    assert await stored(coach) == (20, 0)


async def test_upload_is_repeated_once_per_idempotency_key(coach: CoachClient, exercise: Json) -> None:
    file = picture()
    replies = [
        await coach.send(
            "POST",
            f"/exercises/{exercise['_id']}/media",
            data=form(file, "file"),
            headers={"Idempotency-Key": "one-upload"},
        )
        for _ in range(2)
    ]
    first, second = (reply.ok(201) for reply in replies)
    assert first == second
    assert len((await read(coach, exercise))["media"]) == 1


# --- what is accepted ----------------------------------------------------------------------------------------------

HTML = b"<html><script>alert(1)</script></html>"
REJECTED = {
    "page": HTML,
    "plan": PDF,
    "empty": b"",
    "bitmap": picture("BMP"),
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "cut picture": picture()[:200],
    "cut animation": animation("GIF", 8, (200, 100))[:1200],
    "cut animated webp": animation("WEBP", 8, (200, 100))[:-60],
    "cut mp4": mp4(data=bytes(500))[:-100],
    "cut within a header": mp4(end=[box(b"free")])[:-4],
    "mp4 and page": mp4() + HTML,
    "mp4 without pictures": mp4(track(b"soun")),
    "mp4 without data": box(b"ftyp", b"isom", bytes(4)) + box(b"moov", track()),
    "heic": mp4(brand=b"heic"),
    "avif": picture("AVIF"),
    "box larger than its container": mp4(track(b"vide", b"\xff\xff\xff\xff" + b"udta")),
    "64-bit size that wraps": mp4(end=[(1).to_bytes(4, "big") + b"free" + b"\xff" * 8]),
    "box smaller than its header": mp4(end=[(4).to_bytes(4, "big") + b"free"]),
    "matroska": webm(doc_type=b"matroska"),
    "cut webm": webm(data=bytes(500))[:-100],
    "webm and page": webm() + HTML,
    "webm without pictures": webm(2),
    "webm of zeros": webm()[:40] + bytes(200),
    "only a signature": b"\x1a\x45\xdf\xa3",
    "only a brand": b"\0\0\0\x18ftypisom",
}


async def test_other_or_broken_file_is_rejected_and_not_stored(coach: CoachClient, exercise: Json) -> None:
    for case, content in REJECTED.items():
        name = ("squat.mp4", "squat.jpg")[len(case) % 2]
        (await upload(coach, exercise, content, name)).refused(400, "file")
        assert await stored(coach) == (0, 0), case
    assert (await read(coach, exercise))["media"] == []


async def test_mp4_with_a_track_that_may_hold_positions_is_rejected(coach: CoachClient, exercise: Json) -> None:
    for kind in (b"meta", b"text", b"sbtl", b"camm"):
        error = (await upload(coach, exercise, mp4(track(), track(kind)))).refused(400, "recorded")
        assert error["errors"][0]["code"] == "UNSUPPORTED_TRACK"
    (await upload(coach, exercise, webm(1, 33))).refused(400, "recorded")
    assert await stored(coach) == (0, 0)


BOMBS = {
    "many pixels": lambda: _with_claimed_size(picture("PNG"), 30_000),
    "many frames": lambda: animation("GIF", 340, (500, 300)),
    "many frames of webp": lambda: animation("WEBP", 72, (1000, 700), lossless=True, quality=0, method=0),
    "many tiny frames": lambda: animation("GIF", 2500, (1, 1)),
    "a frame larger than the picture": lambda: _with_huge_frame(animation("GIF", 2, (8, 8))),
}


def _with_claimed_size(png: bytes, side: int) -> bytes:
    """A PNG whose header claims to be so many pixels wide and high."""
    header = png[12:16] + 2 * side.to_bytes(4, "big") + png[24:29]
    return png[:12] + header + crc32(header).to_bytes(4, "big") + png[33:]


def _with_huge_frame(gif: bytes) -> bytes:
    """A GIF whose second frame claims to be 65,000 pixels wide and high."""
    second = gif.rindex(b"\x2c")
    return gif[: second + 5] + (65_000).to_bytes(2, "little") * 2 + gif[second + 9 :]


@pytest.mark.parametrize("case", [pytest.param(each, marks=[proof] * (each == "many frames")) for each in BOMBS])
async def test_decompression_bomb_is_rejected(coach: CoachClient, exercise: Json, case: str) -> None:
    (await upload(coach, exercise, BOMBS[case]())).refused(400, "pixels")
    assert await stored(coach) == (0, 0)
    (await upload(coach, exercise, picture())).ok(201)


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
async def test_animation_keeps_its_frames(coach: CoachClient, exercise: Json, kind: str) -> None:
    entry = (await upload(coach, exercise, animation(kind, 5))).ok(201)
    served = Image.open(io.BytesIO((await fetch(coach, entry["url"])).raw))
    assert (served.format, served.n_frames, served.size) == (kind, 5, (40, 30))  # type: ignore[attr-defined]  # images of several frames have it
    served.seek(2)
    served.load()
    assert served.info["duration"] == 80


async def test_file_over_the_limit_is_rejected(coach: CoachClient, exercise: Json) -> None:
    (await upload(coach, exercise, bytes(100_000_001))).refused(413)
    assert await stored(coach) == (0, 0)


# --- metadata ------------------------------------------------------------------------------------------------------


async def served_content(coach: CoachClient, exercise: Json, content: bytes) -> bytes:
    entry = (await upload(coach, exercise, content)).ok(201)
    served: bytes = (await fetch(coach, entry["url"])).raw
    return served


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
async def test_location_is_removed_from_pictures(coach: CoachClient, exercise: Json, kind: str) -> None:
    exif = Image.Exif()
    exif.get_ifd(0x8825).update({1: "N", 2: (40.0, 25.0, 0.0), 3: "W", 4: (3.0, 42.0, 0.0)})
    exif[0x010E] = "Retiro park"
    content = picture(kind, exif=exif.tobytes())
    assert b"Retiro" in content
    served = await served_content(coach, exercise, content)
    assert b"Retiro" not in served
    assert not Image.open(io.BytesIO(served)).getexif()


async def test_comments_and_extensions_are_removed_from_animations(coach: CoachClient, exercise: Json) -> None:
    out = io.BytesIO()
    frames = [Image.new("RGB", (20, 20), color) for color in ("red", "blue")]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], comment=b"Retiro park")
    assert b"Retiro" in out.getvalue()
    assert b"Retiro" not in await served_content(coach, exercise, out.getvalue())


XMP = bytes.fromhex("be7acfcb97a942e89c71999491e3afac") + b"<exif:GPSLatitude>" + ISO6709
PLACES = {
    "user data of the file": mp4(moov=[box(b"udta", box(b"\xa9xyz", b"\0\x12\x15\xc7", ISO6709))]),
    "user data of a track": mp4(track(b"vide", box(b"udta", box(b"loci", ISO6709)))),
    "metadata of the file": mp4(moov=[box(b"meta", bytes(4), box(b"ilst", ISO6709))]),
    "metadata next to the tracks": mp4(end=[box(b"meta", bytes(4), ISO6709)]),
    "XMP": mp4(end=[box(b"uuid", XMP, large=True)]),
    "padding": mp4(end=[box(b"free", ISO6709), box(b"skip", ISO6709)]),
    "box of an unknown kind": mp4(moov=[box(b"gps ", ISO6709)]),
    "name of the handler": mp4(track(name=ISO6709)),
    "name of the handler of sound": mp4(track(), track(b"soun", name=ISO6709)),
    "name of the compressor": mp4(track(compressor=ISO6709)),
    "name of a webm track": webm(track_name=ISO6709),
    "webm tags": webm(extra=[LOCATION_TAG]),
    "tags of a recording": webm(extra=[LOCATION_TAG], live=True),
    "title": webm(info=[element(b"\x7b\xa9", ISO6709)]),
    "webm attachment": webm(extra=[element(b"\x19\x41\xa4\x69", ISO6709)]),
    "webm padding": webm(extra=[element(b"\xec", ISO6709)]),
    "short element": webm(extra=[b"\xbf\x84" + ISO6709[:4]]),
}


async def test_location_is_removed_from_videos_without_moving_anything(coach: CoachClient, exercise: Json) -> None:
    for case, content in PLACES.items():
        served = await served_content(coach, exercise, content)
        assert ISO6709[:4] in content, case
        assert ISO6709[:4] not in served, case
        assert len(served) == len(content), "offsets in the file stay right"
        assert served.index(b"abc") == content.index(b"abc")
        if case in ("XMP", "webm tags"):
            assert await served_content(coach, exercise, served) == served, "a clean file stays as it is"


async def test_clean_video_is_stored_unchanged(coach: CoachClient, exercise: Json) -> None:
    for content in (mp4(), webm(), webm(live=True), mp4(track(), track(b"tmcd"))):
        assert await served_content(coach, exercise, content) == content


async def test_fragmented_mp4_is_accepted(coach: CoachClient, exercise: Json) -> None:
    fragment = box(b"moof", box(b"mfhd", bytes(8)), box(b"traf", box(b"tfhd", bytes(8)), box(b"udta", ISO6709)))
    content = mp4(end=[fragment, box(b"mdat", b"def", large=True)])
    assert await served_content(coach, exercise, content) == content.replace(
        box(b"udta", ISO6709), box(b"free", bytes(len(ISO6709)))
    )


async def test_video_with_too_many_entries_is_rejected(
    coach: CoachClient, exercise: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 200,000, which takes seconds to check."""
    assert media._MAX_ENTRIES == 200_000
    monkeypatch.setattr(media, "_MAX_ENTRIES", 1_000)
    (await upload(coach, exercise, webm(extra=[element(INFO, size=b"\x80")] * 1_001))).refused(400, "complete video")
    (await upload(coach, exercise, webm(extra=[element(INFO, size=b"\x80")] * 900))).ok(201)

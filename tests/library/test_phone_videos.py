"""Videos as phones make them: QuickTime files, with tracks of positions and other data that are removed."""

from __future__ import annotations

import pytest

from tests.core.test_uploads import fetch, stored
from tests.library.test_exercise_media import exercise, served_content, upload  # noqa: F401 - a fixture
from tests.support.client import CoachClient
from tests.support.media_files import ISO6709, MOV_DATA, box, mov, sampled_track, track
from tests.support.training import Json

PICTURE = sampled_track(b"vide", [(MOV_DATA, [3])])
SIZE = len(ISO6709)
AFTER = MOV_DATA + 3  # of the first picture
KEYS = box(b"meta", bytes(4), box(b"keys", b"com.apple.quicktime.location.ISO6709"), box(b"ilst", ISO6709))

# Each has the bytes "abc" of a picture, and positions in the media data, in user data or in metadata.
VIDEOS = {
    "no other track": mov(b"abc", PICTURE, track(b"soun"), moov=[KEYS]),
    "one sample": mov(b"abc" + ISO6709, PICTURE, sampled_track(b"meta", [(AFTER, [SIZE])])),
    "two kinds of tracks": mov(
        b"abc" + ISO6709 * 2,
        PICTURE,
        sampled_track(b"meta", [(AFTER, [SIZE])]),
        sampled_track(b"text", [(AFTER + SIZE, [SIZE])]),
    ),
    "samples of different sizes": mov(
        b"abc" + ISO6709 * 3, PICTURE, sampled_track(b"meta", [(AFTER, [SIZE, 2 * SIZE])])
    ),
    "chunks between pictures": mov(
        b"abc" + ISO6709 * 2 + b"def" + ISO6709,
        sampled_track(b"vide", [(MOV_DATA, [3]), (AFTER + 2 * SIZE, [3])]),
        sampled_track(b"meta", [(AFTER, [SIZE, SIZE]), (AFTER + 2 * SIZE + 3, [SIZE])]),
    ),
    "large offsets": mov(b"abc" + ISO6709, PICTURE, sampled_track(b"camm", [(AFTER, [SIZE])], large=True)),
    "MP4": mov(b"abc" + ISO6709, PICTURE, sampled_track(b"mett", [(AFTER, [SIZE])]), brand=b"mp42"),
    "track without a kind": mov(b"abc" + ISO6709, PICTURE, sampled_track(b"\0\0\0\0", [(AFTER, [SIZE])])),
}


@pytest.mark.parametrize("case", VIDEOS)
async def test_positions_are_removed_without_moving_anything(coach: CoachClient, exercise: Json, case: str) -> None:  # noqa: F811 - the fixture that is imported above
    content = VIDEOS[case]
    entry = (await upload(coach, exercise, content, "squat.mov")).ok(201)
    reply = await fetch(coach, entry["url"])
    assert entry["type"] == "video"
    assert reply.headers["Content-Type"] == ("video/mp4" if case == "MP4" else "video/quicktime")
    assert ISO6709 in content
    assert ISO6709[:4] not in reply.raw
    assert len(reply.raw) == len(content)
    pictures = [b"abc", b"def"] if b"def" in content else [b"abc"]
    assert [reply.raw.index(each) for each in pictures] == [content.index(each) for each in pictures]
    assert reply.raw.count(b"trak") == 1 + content.count(b"soun"), "tracks of other kinds are removed"
    assert await served_content(coach, exercise, reply.raw) == reply.raw, "a clean file stays as it is"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (mov(b"abc", PICTURE, track(b"meta")), "UNSUPPORTED_TRACK"),
        (
            mov(b"abc", PICTURE, sampled_track(b"meta", [(AFTER, [0])]), end=[box(b"moof"), box(b"mdat")]),
            "UNSUPPORTED_TRACK",
        ),
        (mov(b"abc" + ISO6709, PICTURE, sampled_track(b"meta", [(AFTER + 1, [SIZE])])), "BROKEN_VIDEO"),
        (mov(b"abc", PICTURE, sampled_track(b"meta", [(4, [8])])), "BROKEN_VIDEO"),
        (mov(b"abc", PICTURE, sampled_track(b"meta", [(AFTER, [0] * 199_990)])), "BROKEN_VIDEO"),
        (mov(b"abc", sampled_track(b"soun", [(MOV_DATA, [3])])), "UNSUPPORTED_FILE_TYPE"),
    ],
    ids=["no tables", "fragments", "end outside", "start outside", "too many samples", "no picture"],
)
async def test_track_that_cannot_be_removed_is_rejected(
    coach: CoachClient,
    exercise: Json,  # noqa: F811 - the fixture that is imported above
    content: bytes,
    code: str,
) -> None:
    error = (await upload(coach, exercise, content, "squat.mov")).refused(400, "file")
    assert error["errors"][0]["code"] == code
    assert await stored(coach) == (0, 0)

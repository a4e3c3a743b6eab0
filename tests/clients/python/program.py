"""openapi-python-client: list, create, schedule, log, upload. Arguments: the base address and an API key.

The picture to upload is read from standard input.
"""

import datetime
import io
import sys
from typing import TypeVar

from coaching_service_client import AuthenticatedClient
from coaching_service_client.api.customers import create_customer, list_customers
from coaching_service_client.api.exercises import list_exercises
from coaching_service_client.api.logs import log_workout_item
from coaching_service_client.api.progress_photos import create_progress_photo
from coaching_service_client.api.workouts import create_workout_block, create_workout_item
from coaching_service_client.models import (
    CreatedCustomer,
    CreateProgressPhotoBody,
    CreateProgressPhotoBodyImageSideIndex,
    CustomerPage,
    ExerciseItem,
    ExerciseItemLog,
    ExercisePage,
    NewCustomer,
    NewCustomerSet,
    NewExerciseItem,
    NewExerciseItemType,
    NewWorkoutBlock,
    ProgressPhoto,
    RepsLoadSet,
    RepsLoadSetType,
    WorkoutBlock,
)
from coaching_service_client.types import File

T = TypeVar("T")


def expect(response: object, expected: type[T]) -> T:
    """The response, which must be of the expected type and not an error."""
    if not isinstance(response, expected):
        raise SystemExit(f"{response!r} is not a {expected.__name__}")
    return response


def main(base_url: str, key: str, picture: bytes) -> None:
    """Run every step against the service at `base_url`."""
    client = AuthenticatedClient(base_url, key, prefix="", auth_header_name="X-API-Key")
    monday = datetime.date(2026, 3, 2)
    new = NewCustomer(name="Dee", send_invitation=False)
    customer = expect(create_customer.sync(client=client, body=new), CreatedCustomer)
    listed = list_customers.sync(client=client, archived=False, page_size=50, page_num=1, contains="Dee")
    assert [entry.field_id for entry in expect(listed, CustomerPage).docs] == [customer.field_id]

    exercises = expect(list_exercises.sync(client=client, page_size=1, page_num=1), ExercisePage)
    day = NewWorkoutBlock(name="Lower body", date=monday)
    block = expect(create_workout_block.sync(customer.field_id, client=client, body=day), WorkoutBlock)
    planned = RepsLoadSet(RepsLoadSetType.REPS_LOAD, min_planned_reps=8, max_planned_reps=10, load=60)
    squat = NewExerciseItem(exercises.docs[0].field_id, [planned], NewExerciseItemType.EXERCISE)
    added = create_workout_item.sync(customer.field_id, block.field_id, client=client, body=squat)
    item = expect(added, ExerciseItem)
    done = ExerciseItemLog(customer_sets=[NewCustomerSet(reps=8, load=60)])
    logged = log_workout_item.sync(customer.field_id, block.field_id, item.field_id, client=client, body=done)
    assert expect(logged, ExerciseItem).is_completed

    front = CreateProgressPhotoBodyImageSideIndex.FRONT
    upload = CreateProgressPhotoBody(monday.isoformat(), front, File(io.BytesIO(picture), "front.png", "image/png"))
    photo = create_progress_photo.sync(customer.field_id, client=client, body=upload)
    assert expect(photo, ProgressPhoto).photos.front_url


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.stdin.buffer.read())

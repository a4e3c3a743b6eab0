"""The client library: create, schedule, log, upload, walk, and what it does when requests fail.

Arguments: the address of the service, that of a proxy that fails, and an API key. The picture to upload is read from standard
input. The company has 250 clients.
"""

import asyncio
import datetime
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coaching_service_client import AuthenticatedClient, RequestFailed, connect, ok, walk, walk_async
from coaching_service_client.api.client_access import invite_customer
from coaching_service_client.api.customers import create_customer, get_customer, list_customers, update_customer
from coaching_service_client.api.exercises import list_exercises
from coaching_service_client.api.logs import log_workout_item
from coaching_service_client.api.progress_photos import create_progress_photo
from coaching_service_client.api.workouts import create_workout_block, create_workout_item
from coaching_service_client.models import (
    CreateProgressPhotoBody,
    CustomerChange,
    ExerciseItem,
    ExerciseItemLog,
    NewCustomer,
    NewExerciseCustomerSet,
    NewExerciseItem,
    NewWorkoutBlock,
    RepsLoadSet,
    WorkoutBlock,
)
from coaching_service_client.types import File

MONDAY = datetime.date(2026, 3, 2)


@contextmanager
def refused(status: int, code: str | None = None) -> Iterator[None]:
    """The request in this block must fail so."""
    try:
        yield
    except RequestFailed as error:
        assert (error.status, error.code) == (status, code), error
    else:
        raise AssertionError(f"not refused with {status} {code}")


def train_a_client(client: AuthenticatedClient, picture: bytes) -> None:
    """Create a client, schedule a workout, log it, and upload a photo."""
    customer = ok(create_customer.sync(client=client, body=NewCustomer(name="Dee", send_invitation=False)))
    listed = ok(list_customers.sync(client=client, archived=False, page_size=50, page_num=1, contains="Dee"))
    assert [entry.field_id for entry in listed.docs] == [customer.field_id]

    exercises = ok(list_exercises.sync(client=client, page_size=1, page_num=1))
    day = NewWorkoutBlock(name="Lower body", date=MONDAY)
    block = ok(create_workout_block.sync(customer.field_id, client=client, body=day), WorkoutBlock)
    planned = RepsLoadSet("reps_load", min_planned_reps=8, max_planned_reps=10, load=60)
    squat = NewExerciseItem(exercises.docs[0].field_id, [planned], "EXERCISE")
    added = create_workout_item.sync(customer.field_id, block.field_id, client=client, body=squat)
    item = ok(added, ExerciseItem)
    done = ExerciseItemLog(customer_sets=[NewExerciseCustomerSet(reps=8, load=60)])
    logged = log_workout_item.sync(customer.field_id, block.field_id, item.field_id, client=client, body=done)
    assert ok(logged, ExerciseItem).is_completed

    upload = CreateProgressPhotoBody(MONDAY.isoformat(), "1", File(io.BytesIO(picture), "front.png", "image/png"))
    assert ok(create_progress_photo.sync(customer.field_id, client=client, body=upload)).photos.front_url


def walk_all_clients(client: AuthenticatedClient) -> None:
    """Meet each of the 250 clients once, also asynchronously."""
    names = [entry.name for entry in walk(list_customers.sync, client=client, archived=False, page_size=50, page_num=1)]
    assert len(names) == len(set(names)) == 250, len(names)

    async def count() -> int:
        listed = walk_async(list_customers.asyncio, client=client, archived=False, page_size=50, page_num=1)
        return len({entry.name async for entry in listed})

    assert asyncio.run(count()) == 250


def fail(address: str, key: str) -> None:
    """Operations succeed although the service is busy and connections are cut; unsafe ones are not repeated."""
    with connect(f"{address}/busy", api_key=key) as busy, connect(f"{address}/cut", api_key=key) as cut:
        ana = ok(create_customer.sync(client=busy, body=NewCustomer(name="Ana", send_invitation=False)))
        bo = ok(create_customer.sync(client=cut, body=NewCustomer(name="Bo", send_invitation=False)))
        change = CustomerChange(surname="Blue", version=bo.version)
        with refused(409, "VERSION_CONFLICT"):  # the first attempt has succeeded
            ok(update_customer.sync(bo.field_id, client=cut, body=change))
        assert ok(get_customer.sync(bo.field_id, client=cut)).surname == "Blue"
        with refused(503):
            update_customer.sync(ana.field_id, client=busy, body=CustomerChange(surname="Red"))
        with refused(503):
            invite_customer.sync(ana.field_id, client=busy)


def main(address: str, failing: str, key: str, picture: bytes) -> None:
    """Run every step."""
    with connect(address, api_key=key) as client:
        walk_all_clients(client)
        train_a_client(client, picture)
        fail(failing, key)
        listed = ok(list_customers.sync(client=client, archived=False, page_size=50, page_num=1, contains="Bo"))
        assert [entry.name for entry in listed.docs] == ["Bo"]
        with refused(404, "CUSTOMER_NOT_FOUND"):
            ok(get_customer.sync("0123456789abcdef01234567", client=client))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.stdin.buffer.read())

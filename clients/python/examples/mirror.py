"""Mirror the clients, workouts, programs and exercises of a company: `python mirror.py mirror.db [--once]`.

BASE is the address of the service, KEY an API key. It may be killed at any moment: what events change is stored with
the cursor behind them, in one transaction. `--once` ends it after the last event.
"""

import json
import os
import sqlite3
import sys
from datetime import date
from typing import Any

from coaching_service_client import RequestFailed, connect, ok, pages, walk
from coaching_service_client.api.changes import list_events
from coaching_service_client.api.customers import get_customer, list_customers
from coaching_service_client.api.exercises import get_exercise, list_own_exercises
from coaching_service_client.api.programs import get_program, list_programs
from coaching_service_client.api.workouts import get_workout_block, list_workout_blocks

client = connect(os.environ["BASE"], api_key=os.environ["KEY"])
database, once = sqlite3.connect(sys.argv[1]), "--once" in sys.argv
database.execute("CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, kind TEXT, customer TEXT, body TEXT)")
database.execute("CREATE TABLE IF NOT EXISTS position (id INTEGER PRIMARY KEY, cursor TEXT)")
readers = {"customer": get_customer, "program": get_program, "exercise": get_exercise, "workout": get_workout_block}
calendar: dict[str, Any] = {"start_date": date(2000, 1, 1), "end_date": date(2099, 12, 31)}


def store(kind: str, record: Any) -> None:
    row = (record.field_id, kind, getattr(record, "customer_id", None), json.dumps(record.to_dict()))
    database.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", row)


def existing(result: Any) -> Any:
    return None if getattr(result, "status_code", None) == 404 else ok(result)


def read_everything() -> str | None:
    """Replace all records. The cursor comes first: what changes while they are read comes again as an event."""
    *_, last = pages(list_events.sync, client=client, limit=500)
    with database:
        database.execute("DELETE FROM records")
        for archived in (False, True):
            for customer in walk(list_customers.sync, client=client, archived=archived, page_size=50, page_num=1):
                store("customer", customer)
                for block in existing(list_workout_blocks.sync(customer.field_id, client=client, **calendar)) or ():
                    store("workout", block)
            for program in walk(list_programs.sync, client=client, archived=archived, page_size=50, page_num=1):
                store("program", program)
        for exercise in walk(list_own_exercises.sync, client=client, page_size=50, page_num=1):
            store("exercise", exercise)
        database.execute("INSERT OR REPLACE INTO position VALUES (1, ?)", [last.next_cursor])
    return last.next_cursor


def follow(event: dict[str, Any]) -> None:
    """Read the record of an event again, or remove it with what belongs to it."""
    kind, data = "workout" if "wblockId" in event["data"] else event["type"].split(".")[0], event["data"]
    if kind in readers:
        path = (event["customerId"], data["wblockId"]) if kind == "workout" else (data[f"{kind}Id"],)
        if record := existing(readers[kind].sync(*path, client=client)):
            store(kind, record)
        else:
            database.execute("DELETE FROM records WHERE id = ? OR customer = ?", (path[-1], path[-1]))


[cursor], has_more = database.execute("SELECT cursor FROM position").fetchone() or [read_everything()], True
while has_more or not once:
    try:
        page = ok(list_events.sync(client=client, limit=100, after=cursor, wait=0 if once else 25))
        with database:
            for event in page.docs:
                follow(event.to_dict())
            database.execute("UPDATE position SET cursor = ?", [page.next_cursor])
        cursor, has_more = page.next_cursor, page.has_more
    except RequestFailed as error:
        if error.code != "CURSOR_EXPIRED":
            raise
        cursor = read_everything()

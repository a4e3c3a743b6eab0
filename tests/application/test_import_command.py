"""`coaching-service import` of training history."""

from __future__ import annotations

import csv
from pathlib import Path

from tests.application.test_command_line import PASSWORD, Operator, operator

__all__ = ["operator"]
STRONG = (
    "Date,Workout Name,Duration,Exercise Name,Set Order,Weight,Reps,Distance,Seconds,Notes,Workout Notes,RPE\n"
    '2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",1,120.0,10.0,0,0.0,"","",7.5\n'
    '2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",Rest Timer,0,0,0,120.0,"","",\n'
)


async def test_history_of_a_client_is_imported(operator: Operator, tmp_path: Path) -> None:
    owner = ("--email", "history-import@example.com")
    (await operator.types("create-company", "Gym", "--name", "Olga", *owner, "--password", PASSWORD)).ok()
    clients, file, report = tmp_path / "clients.csv", tmp_path / "strong.csv", tmp_path / "report.csv"
    clients.write_text("name,email\nMara,mara@example.com\n")
    (await operator.types("import", *owner, str(clients))).ok()
    file.write_text(STRONG)
    command = ("import", str(file), "--customer", "mara@example.com")

    checked = (await operator.types(*command, "--dry-run")).ok()
    assert "--load-unit kg or --load-unit lb" in checked
    assert "1 sets  Leg Press (Machine) → a new exercise" in checked
    refused = await operator.types(*command)
    assert refused.exit_code == 1
    assert "leaves questions open: LOAD_UNIT" in refused.err
    done = await operator.types(*command, "--load-unit", "kg", "--report", str(report))
    assert done.ok().endswith("Imported: 1 sessions, 1 sets, 1 exercises; rows: 2; left out: 1\n")
    with report.open(encoding="utf-8") as lines:
        assert [row["code"] for row in csv.DictReader(lines)] == ["NOT_A_SET"]
    unknown = await operator.types("import", str(file), "--customer", "nobody@example.com")
    assert "No client has the address nobody@example.com" in unknown.err
    neither = await operator.types("import", str(file))
    assert "--email or --customer is required" in neither.err

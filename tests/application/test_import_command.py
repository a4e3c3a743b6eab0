"""`coaching-service export` and `import`: of a company, its clients and their training history."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from tests.support.commands import PASSWORD, Operator

STRONG = (
    "Date,Workout Name,Duration,Exercise Name,Set Order,Weight,Reps,Distance,Seconds,Notes,Workout Notes,RPE\n"
    '2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",1,120.0,10.0,0,0.0,"","",7.5\n'
    '2026-02-11 07:05:00,"Lower A",48m,"Leg Press (Machine)",Rest Timer,0,0,0,120.0,"","",\n'
)


async def test_history_of_a_client_is_imported(prepared: Operator, tmp_path: Path) -> None:
    owner = ("--email", "history-import@example.com")
    (await prepared.types("create-company", "Gym", "--name", "Olga", *owner, "--password", PASSWORD)).ok()
    clients, file, report = tmp_path / "clients.csv", tmp_path / "strong.csv", tmp_path / "report.csv"
    clients.write_text("name,email\nMara,mara@example.com\n")
    (await prepared.types("import", *owner, str(clients))).ok()
    file.write_text(STRONG)
    command = ("import", str(file), "--customer", "mara@example.com")

    checked = (await prepared.types(*command, "--dry-run")).ok()
    assert "--load-unit kg or --load-unit lb" in checked
    assert "1 sets  Leg Press (Machine) → a new exercise" in checked
    refused = await prepared.types(*command)
    assert refused.exit_code == 1
    assert "leaves questions open: LOAD_UNIT" in refused.err
    done = await prepared.types(*command, "--load-unit", "kg", "--report", str(report))
    assert done.ok().endswith("Imported: 1 sessions, 1 sets, 1 exercises; rows: 2; left out: 1\n")
    with report.open(encoding="utf-8") as lines:
        assert [row["code"] for row in csv.DictReader(lines)] == ["NOT_A_SET"]
    unknown = await prepared.types("import", str(file), "--customer", "nobody@example.com")
    assert "No client has the address nobody@example.com" in unknown.err
    for option, kind in (("--exercise", "an exercise"), ("--client", "a client")):
        wrong = await prepared.types(*command, option, "Press=first")
        assert f"Press: must be the identifier of {kind}, create or skip" in wrong.err
    neither = await prepared.types("import", str(file))
    assert "--email or --customer is required" in neither.err


async def test_export_and_import_of_a_company(prepared: Operator, tmp_path: Path) -> None:
    for name in ("first", "second"):
        email = f"{name}-transfer@example.com"
        words = ("create-company", name, "--name", "Olga", "--email", email, "--password", PASSWORD)
        (await prepared.types(*words)).ok()
    sheet, archive = tmp_path / "clients.csv", tmp_path / "company.zip"
    sheet.write_text("name,email\nAna,ana@example.com\nBo,no address\n")
    source, target = ("--email", "first-transfer@example.com"), ("--email", "second-transfer@example.com")

    checked = await prepared.types("import", *source, "--dry-run", str(sheet))
    assert checked.ok() == "Would import: 2 customers; left out: 0\n", "the second without the address"
    assert "line 3: email must be an e-mail address" in checked.err
    assert (await prepared.types("import", *source, str(sheet))).ok() == "Imported: 2 customers; left out: 0\n"
    assert (await prepared.types("export", *source, str(archive))).ok().endswith("bytes\n")
    assert archive.stat().st_mode & 0o777 == 0o600
    assert (await prepared.types("import", *target, str(archive))).ok() == "Imported: 2 customers; left out: 0\n"
    sheet.write_bytes(b"\x00\x01")
    broken = await prepared.types("import", *target, str(sheet))
    assert (broken.exit_code, broken.out) == (1, "")
    updated = await prepared.types("import", *source, "--on-conflict", "update", str(archive))
    assert updated.err.endswith("Error: onConflict is for CSV files: an export has new records only\n")
    assert "Error: The file is neither an export of a company nor a table" in broken.err


async def test_an_import_updates_known_clients_or_leaves_them_out(prepared: Operator, tmp_path: Path) -> None:
    email = "conflict-import@example.com"
    words = ("create-company", "Conflicts", "--name", "Olga", "--email", email, "--password", PASSWORD)
    (await prepared.types(*words)).ok()
    sheet, source = tmp_path / "clients.csv", ("import", "--email", email)
    sheet.write_text("name,externalId\nAna,crm-1\n")
    (await prepared.types(*source, str(sheet))).ok()
    sheet.write_text("name,externalId,surname\nAna,crm-1,Flores\nBo,crm-2,\n")

    left_out = await prepared.types(*source, "--dry-run", str(sheet))
    assert left_out.ok() == "Would import: 1 customers; left out: 1\n"
    assert "line 2: externalId is in use by another record" in left_out.err
    (await prepared.types(*source, "--on-conflict", "skip", str(sheet))).refused("'skip' is not one of", exit_code=2)
    updated = await prepared.types(*source, "--on-conflict", "update", str(sheet))
    assert (updated.ok(), updated.err.count("line")) == ("Imported: 2 customers; left out: 0\n", 0)
    again = await prepared.types(*source, "--dry-run", str(sheet))
    assert again.ok() == "Would import: nothing; left out: 2\n"


async def test_only_an_owner_exports(prepared: Operator, tmp_path: Path) -> None:
    (await prepared.types("export", "--email", "nobody@example.com", str(tmp_path / "x.zip"))).refused("No coach")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - ruff refuses methods of a Path in asynchronous functions

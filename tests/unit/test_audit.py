"""The audit of dependencies and the bill of materials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import audit

REPORT = {
    "dependencies": [
        {
            "name": "aiohttp",
            "version": "3.8.0",
            "vulns": [{"id": "PYSEC-1", "aliases": ["CVE-2024-1"], "fix_versions": ["3.9.0"], "description": "..."}],
        },
        {"name": "yarl", "version": "1.20.0", "vulns": []},
        {"name": "own", "skip_reason": "Dependency not found on PyPI"},
    ]
}


def test_report_is_divided_into_vulnerable_audited_and_not_audited() -> None:
    assert audit.read_report(REPORT) == {
        "audited": 2,
        "not_audited": ["own"],
        "reason": "Dependency not found on PyPI",
        "vulnerabilities": [
            {"package": "aiohttp 3.8.0", "identifiers": ["PYSEC-1", "CVE-2024-1"], "fixed_in": ["3.9.0"]}
        ],
    }


def test_accepted_vulnerability_needs_a_reason() -> None:
    assert audit.read_accepted("# comment\n\nCVE-2024-1  not used\n") == {"CVE-2024-1"}
    with pytest.raises(ValueError, match="CVE-2024-2 needs a reason"):
        audit.read_accepted("CVE-2024-2\n")


def test_bill_of_materials_has_python_packages_and_browser_libraries(tmp_path: Path) -> None:
    target = tmp_path / "sbom.json"
    number = audit.write_bill_of_materials(target)
    document = json.loads(target.read_text())
    components = {each["name"]: each for each in document["components"]}
    assert len(document["components"]) == number > 50
    assert (document["bomFormat"], document["metadata"]["component"]["name"]) == ("CycloneDX", "coaching-service")
    assert components["aiohttp"]["purl"].startswith("pkg:pypi/aiohttp@3.")
    assert components["@github/combobox-nav"]["purl"].startswith("pkg:npm/%40github/combobox-nav@3.")
    assert {"motor", "mcp", "htmx.org", "uplot"} <= set(components)

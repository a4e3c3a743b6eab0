"""The audit of dependencies and the bill of materials."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import coaching_service
from scripts import audit, licenses
from tests.support.sampled import proof

REPORT: dict[str, Any] = {
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


LOCKED = {"aiohttp": "3.8.0", "yarl": "1.20.0", "own": "1.0"}
TODAY = date(2026, 11, 25)


def test_report_is_divided_into_vulnerable_checked_and_not_checked() -> None:
    assert audit.read_report(REPORT, LOCKED, TODAY) == {
        "checked": {"aiohttp 3.8.0": "2026-11-25", "yarl 1.20.0": "2026-11-25"},
        "not_checked": ["own 1.0"],
        "reason": "Dependency not found on PyPI",
        "vulnerabilities": [
            {"package": "aiohttp 3.8.0", "identifiers": ["PYSEC-1", "CVE-2024-1"], "fixed_in": ["3.9.0"]}
        ],
    }


def test_audit_without_the_database_is_no_success() -> None:
    result = audit.read_report({}, LOCKED, TODAY, "no connection")
    assert result["not_checked"] == ["aiohttp 3.8.0", "yarl 1.20.0", "own 1.0"]
    assert "NOT CHECKED for vulnerabilities: 3 versions" in audit.summarize(result, [], TODAY)
    assert audit.exit_code(result, 0, required=False, allow_unchecked=False) == 2
    assert audit.exit_code(result, 0, required=True, allow_unchecked=False) == 2
    assert audit.exit_code(result, 0, required=False, allow_unchecked=True) == 0
    assert audit.exit_code(result, 1, required=False, allow_unchecked=True) == 1


def test_locked_package_that_is_not_in_the_report_has_not_been_checked() -> None:
    result = audit.read_report({"dependencies": REPORT["dependencies"][:1]}, {"aiohttp": "3.8.0", "motor": "3"}, TODAY)
    assert (result["not_checked"], result["reason"]) == (["motor 3"], "not in the report")


def test_earlier_audit_answers_for_the_same_versions_for_30_days() -> None:
    cached = audit.read_report(REPORT, LOCKED, TODAY)
    locked = {"aiohttp": "3.8.0", "yarl": "1.21.0"}
    for days, expected in ((30, ["yarl 1.21.0"]), (31, ["aiohttp 3.8.0", "yarl 1.21.0"])):
        day = TODAY + timedelta(days=days)
        result = audit.add_cached(audit.read_report({}, locked, day, "no connection"), cached, day)
        assert result["not_checked"] == expected
        assert [each["package"] for each in result["vulnerabilities"]] == ["aiohttp 3.8.0"][: 31 - days]
    day = TODAY + timedelta(days=1)
    result = audit.add_cached(audit.read_report({}, {"yarl": "1.20.0"}, day, "no connection"), cached, day)
    assert "1 of them were checked earlier, the first on 2026-11-25" in audit.summarize(result, [], day)
    assert audit.exit_code(result, 0, required=False, allow_unchecked=False) == 0
    assert audit.exit_code(result, 0, required=True, allow_unchecked=False) == 2, "a release needs an answer now"


def test_accepted_vulnerability_needs_a_reason() -> None:
    assert audit.read_accepted("# comment\n\nCVE-2024-1  not used\n") == {"CVE-2024-1"}
    with pytest.raises(ValueError, match="CVE-2024-2 needs a reason"):
        audit.read_accepted("CVE-2024-2\n")


def test_license_of_every_locked_package_and_browser_library_is_allowed() -> None:
    rules = licenses.read_rules(licenses.RULES.read_text("utf-8"))
    shipped = [(name, licenses.find_license(name, rules)) for name in audit.read_lock()]
    shipped += [(each["name"], each["license"]) for each in json.loads(audit.BROWSER_LIBRARIES.read_text("utf-8"))]
    assert {"motor", "mcp", "htmx.org", "uplot"} <= {name for name, _ in shipped}
    assert licenses.find_refused(shipped, rules) == []
    assert {*rules.packages, *rules.exceptions} <= {name for name, _ in shipped}, "no rule for what is not shipped"


@proof
def test_bill_of_materials_has_python_packages_and_browser_libraries_with_allowed_licenses(tmp_path: Path) -> None:
    target = tmp_path / "sbom.json"
    shipped = audit.write_bill_of_materials(target)
    listed, document = dict(shipped), json.loads(target.read_text())
    components = {each["name"]: each for each in document["components"]}
    assert components.keys() == listed.keys()
    assert audit.read_lock().keys() < listed.keys()
    described = document["metadata"]["component"]
    assert (document["bomFormat"], described["name"], described["version"]) == (
        "CycloneDX",
        "coaching-service",
        coaching_service.__version__,
    )
    assert components["aiohttp"]["purl"].startswith("pkg:pypi/aiohttp@3.")
    assert components["aiohttp"]["licenses"] == [{"expression": "Apache-2.0 AND MIT"}]
    assert components["@github/combobox-nav"]["purl"].startswith("pkg:npm/%40github/combobox-nav@3.")
    assert components["htmx.org"]["licenses"] == [{"expression": "0BSD"}]
    assert {"motor", "mcp", "htmx.org", "uplot"} <= set(components)

    rules = licenses.read_rules(licenses.RULES.read_text("utf-8"))
    assert licenses.find_refused(shipped, rules) == []


RULES = """# a comment

allow MIT
allow Apache-2.0
package plain MIT OR GPL-3.0-only its classifier names two
except codec MIT AND GPL-3.0-only in a process of its own
"""


@pytest.mark.parametrize(
    ("package", "expression", "allowed"),
    [
        ("a", "MIT", True),
        ("a", "MIT OR GPL-3.0-only", True),
        ("a", "MIT AND Apache-2.0", True),
        ("a", "Apache-2.0 AND (GPL-3.0-only OR MIT)", True),
        ("a", "GPL-3.0-only", False),
        ("a", "MIT AND GPL-3.0-only", False),
        ("codec", "MIT AND GPL-3.0-only", True),
        ("codec", "GPL-3.0-only", False),
        ("a", "MIT OR (Apache-2.0 AND GPL-3.0-only)", False),  # not read
        ("a", "MIT OR Apache-2.0 AND GPL-3.0-only", False),
        ("a", "MIT License", False),
        ("a", "", False),
        ("a", None, False),
    ],
)
def test_license_is_compared_with_the_rules(package: str, expression: str | None, *, allowed: bool) -> None:
    assert licenses.is_allowed(package, expression, licenses.read_rules(RULES)) is allowed


@pytest.mark.parametrize(
    "line", ["allow MIT License", "package a MIT", "except a GPL-3.0-only", "deny GPL", "package a"]
)
def test_rule_of_another_form_or_without_a_reason_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a rule with its reason"):
        licenses.read_rules(line)

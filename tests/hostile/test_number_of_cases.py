"""The number of hostile cases: a generator that lost a part of the declarations is noticed."""

from __future__ import annotations

from tests.hostile.cases import numbers


def test_there_are_five_thousand_cases() -> None:
    by_subject = numbers()
    print(
        *(f"{number:6,} {subject}" for subject, number in by_subject.items()),
        f"{sum(by_subject.values()):6,} in total",
        sep="\n",
    )
    assert sum(by_subject.values()) >= 5_000
    assert {subject for subject, number in by_subject.items() if number < 40} == set()

"""Names of devices in plain words."""

from __future__ import annotations

import pytest

from coaching_service.web.formatting import describe_device

_CHROME = "(KHTML, like Gecko) Chrome/131.0.0.0"
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
_IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 {_CHROME} Mobile Safari/537.36", "Chrome on Android"),
        (f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36 Edg/131.0.0.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Linux; Android 10; K) {_CHROME} Mobile Safari/537.36 EdgA/131.0.0.0", "Edge on Android"),
        (f"Mozilla/5.0 (Linux; Android 14) SamsungBrowser/27.0 {_CHROME}", "Samsung Internet on Android"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_CHROME} Safari/537.36", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (Windows NT 10.0) {_CHROME} Safari/537.36 OPR/114.0.0.0", "Opera on Windows"),
        (f"{_IPHONE} Version/18.1 Mobile/15E148 Safari/604.1", "Safari on iPhone"),
        (f"{_IPHONE} CriOS/131.0.6778.73 Mobile/15E148 Safari/604.1", "Chrome on iPhone"),
        (f"{_IPHONE} FxiOS/132.0 Mobile/15E148 Safari/605.1.15", "Firefox on iPhone"),
        (f"{_MAC} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Safari/605.1.15", "Safari on Mac"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0", "Firefox on Linux"),
        ("Mozilla/5.0 (iPad; CPU OS 18_1 like Mac OS X) AppleWebKit/605.1.15", "Browser on iPad"),
        ("Firefox/132.0", "Firefox"),
        ("curl/8.5.0", "Unknown device"),
        ("", "Unknown device"),
    ],
)
def test_device_is_described(user_agent: str, name: str) -> None:
    assert describe_device(user_agent) == name

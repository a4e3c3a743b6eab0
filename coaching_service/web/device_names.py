"""Names of devices for the list of signed-in devices, from the User-Agent header."""

from __future__ import annotations

# The first one whose mark is in the header: browsers also name those they are derived from.
_BROWSERS = (
    ("SamsungBrowser/", "Samsung Internet"),
    ("Edg", "Edge"),  # also EdgA and EdgiOS
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
)


def describe_device(user_agent: str) -> str:
    """Return what a User-Agent header says in plain words, such as `Chrome on Android`."""
    browser = _find_name(_BROWSERS, user_agent)
    system = _find_name(_SYSTEMS, user_agent)
    if system is None:
        return browser or "Unknown device"
    return f"{browser or 'Browser'} on {system}"


def _find_name(names: tuple[tuple[str, str], ...], user_agent: str) -> str | None:
    return next((name for mark, name in names if mark in user_agent), None)

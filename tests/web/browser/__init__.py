"""Tests in a real browser, collected only by `scripts/test --browser`."""

"""The items of workout blocks, by type."""

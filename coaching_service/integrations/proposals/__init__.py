"""Proposals of assistants: calls of tools that a coach decides on."""

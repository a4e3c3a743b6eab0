"""Planned training: workout blocks, programs, templates and their visibility to clients."""

"""Backups of the whole database: a folder with a compressed file for each collection, and a manifest."""

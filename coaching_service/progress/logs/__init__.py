"""Logs of completed items, and the updates that follow from them."""

"""Completed training and measured progress of clients."""

"""Erasure of clients and companies in the background."""

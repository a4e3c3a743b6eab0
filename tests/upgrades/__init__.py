"""Data and code of earlier releases with this code."""

"""Export of a client's data as a ZIP file."""

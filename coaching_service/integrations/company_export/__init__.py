"""Export of a whole company: a ZIP archive, or the logged sets as CSV."""

"""Files that no document names: found, reported and removed."""

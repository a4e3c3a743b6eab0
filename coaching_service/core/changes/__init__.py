"""The change log: one document for each operation that writes coaching data, numbered in the order of the commits."""

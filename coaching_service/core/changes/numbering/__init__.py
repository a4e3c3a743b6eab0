"""Numbering the changes of each company in the order in which their transactions were committed."""

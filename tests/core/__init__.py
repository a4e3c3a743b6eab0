"""The core: HTTP, transactions, jobs, mail, uploads."""

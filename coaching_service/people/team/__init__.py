"""The coaches of a company: its owner and employees."""

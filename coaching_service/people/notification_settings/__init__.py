"""Which notifications a user gets, how and when."""

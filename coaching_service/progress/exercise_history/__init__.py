"""What a client did of one exercise, session by session."""

"""A client's training sessions with one exercise."""

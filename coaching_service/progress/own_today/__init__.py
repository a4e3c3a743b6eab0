"""What a client sees first: the workouts of today, and what is due."""

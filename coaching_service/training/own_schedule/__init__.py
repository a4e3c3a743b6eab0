"""What clients change of their calendar: workouts that they move, and workouts of their own."""

"""A client's own calendar and history: which days have workouts, and what became of them."""

"""How a client felt in a workout, in words."""

FEELINGS = ((1, "Bad"), (2, "Poor"), (3, "Okay"), (4, "Good"), (5, "Great"))

"""What clients weigh, for exercises whose load is added to the body's: a copy of the values of their metrics."""

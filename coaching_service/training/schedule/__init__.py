"""Operations on many days of a schedule at once: copy, adjust, replace an exercise, clear; programs from calendars."""

"""Sign-in sessions: sign-up, sign-in, sign-out, and forgotten passwords."""

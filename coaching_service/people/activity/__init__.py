"""The activity feed of a client, newest first."""

"""The activity feed: what happened with a client, newest first."""

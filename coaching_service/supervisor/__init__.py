"""The supervisor of several worker processes: a small program of its own, without the service's other modules."""

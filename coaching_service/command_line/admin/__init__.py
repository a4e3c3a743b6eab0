"""The commands of `coaching-service admin`, one group in each module."""

"""Assistants a coach has let in: grants with their codes and tokens."""

"""Access that coaches granted to assistants: grants with their codes and tokens."""

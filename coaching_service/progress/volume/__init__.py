"""Training volume of a client by muscle group."""

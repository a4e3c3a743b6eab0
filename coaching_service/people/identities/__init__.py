"""Sign-in e-mail addresses and passwords, unique across all companies."""

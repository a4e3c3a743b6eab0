"""The command line and the README."""

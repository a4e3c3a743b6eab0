"""What an installation of the service needs besides the service: an embedded database, backups, its upkeep."""

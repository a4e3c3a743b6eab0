"""Files behind signed links."""

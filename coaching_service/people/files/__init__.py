"""Downloads of files through signed links."""

"""What happens around and after a request: safe retries, queued work."""

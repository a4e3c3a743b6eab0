"""The pages for clients."""

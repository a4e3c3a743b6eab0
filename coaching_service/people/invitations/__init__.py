"""Limits of the invitations that a company sends, and the recipients who want no more of them."""

"""The OAuth 2.1 authorization server for assistants. Its pages are in web/."""

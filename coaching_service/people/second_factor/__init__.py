"""The second factor of a sign-in: codes of an authenticator application, and recovery codes."""

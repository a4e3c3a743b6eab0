"""Access of clients: invitation, first access, impersonation, and passwords set by a coach."""

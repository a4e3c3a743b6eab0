"""How clients get in: invitation, first access, impersonation and passwords set by their coach."""

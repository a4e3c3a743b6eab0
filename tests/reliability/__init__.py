"""The service while processes are started, stopped, killed and restarted."""

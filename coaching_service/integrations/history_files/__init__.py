"""Files with training history and rosters from other services: read, recognised, and turned into sessions."""

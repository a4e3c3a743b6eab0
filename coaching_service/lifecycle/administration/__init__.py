"""What the operator of the service does with companies, users and the queue."""

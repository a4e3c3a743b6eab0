"""What holds when processes are started, stopped, killed and started again."""

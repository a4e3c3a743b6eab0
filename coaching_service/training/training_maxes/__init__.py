"""Training maximums of clients, to which planned percentages refer, and the estimates that stand in for them."""

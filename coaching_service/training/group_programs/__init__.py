"""Groups with a program: clients who join the group get the program."""

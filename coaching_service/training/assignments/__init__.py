"""Assignments of programs: the blocks of a program on a client's calendar, and how far the client is with them."""

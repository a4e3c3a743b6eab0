"""Assignments of programs: the blocks of a program on a client's calendar, and the client's progress in them."""

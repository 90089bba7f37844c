"""Chores that any number of processes may do at once."""

"""Collecting: the race against the clock, the overhead of a vector step, and a soak of faults."""

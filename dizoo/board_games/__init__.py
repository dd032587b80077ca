"""Board games of two players, in NumPy."""

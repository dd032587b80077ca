"""Small poker games of two players, in NumPy."""

"""Games of one joint move with known equilibria."""

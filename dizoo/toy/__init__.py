"""Small problems whose best return is known."""

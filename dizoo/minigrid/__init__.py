"""MiniGrid: rooms, keys and doors seen in part."""

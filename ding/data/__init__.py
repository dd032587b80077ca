"""Data outside of a run: buffers for one's own loops, datasets."""

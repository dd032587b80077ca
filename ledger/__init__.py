"""Which zoo config reaches which return in how many env steps, over several seeds."""

"""Land on a pad with three engines, discrete or continuous."""

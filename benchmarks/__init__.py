"""Speed beside a peer on the same work: `python -m benchmarks`."""

"""What every other package may use: data layout, registries, errors, seeds, logs, files."""

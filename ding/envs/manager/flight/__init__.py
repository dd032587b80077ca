"""What led to the failure of an env: recorded, saved, and played again."""

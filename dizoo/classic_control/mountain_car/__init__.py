"""Drive a weak car out of a valley."""

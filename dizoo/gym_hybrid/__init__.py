"""Drive a point to a target by parametrised actions."""

"""Small control problems from Gymnasium."""

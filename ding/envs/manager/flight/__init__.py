"""Flights: episodes that led to the failure of an env, recorded, saved and replayed."""

"""Self-play and leagues on slime volley."""

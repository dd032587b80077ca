"""Games of a table: cooperative ones with known answers."""

"""Commands for people: `ding train`, `ding eval`, ... one module each, named in `table`."""

"""Deep sea: exploration that needs many steps in a row to be right."""

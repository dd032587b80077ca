"""Application zoo: environments and configs that reach their goal."""

"""One vector env in the place of many envs."""

"""The former name of `dizoo`; `nervex.py` has what the established tutorial takes from it."""

import nervex  # noqa: F401  (makes the modules below this one)

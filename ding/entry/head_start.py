"""Trains in this process while others start: they take seconds, a small task needs no more."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from ding.parallel.cluster import dashboard_options
from ding.parallel.ray_backend import RayBackend, require_ray

# What is done by then is done sooner alone: processes that start take a core from it.
ALONE_SECONDS = 8.0


class StartingRay:
    """Ray and the processes of a run's services, on their way."""

    def __init__(self, names: Sequence[str], delay: float, *, dashboard: bool = False) -> None:
        """`names` of the services that will be wanted; `delay` seconds until they start."""
        require_ray()
        dashboard_options(dashboard)  # Raises now what would be raised later.
        self._names, self._delay, self._dashboard = names, delay, dashboard
        self._abandoned = threading.Event()
        self._backend: RayBackend | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._start, name="starting ray", daemon=True)
        self._thread.start()

    def _start(self) -> None:
        try:
            if self._abandoned.wait(self._delay):
                return
            self._backend = RayBackend.here(self._dashboard, self._abandoned.is_set)
            self._backend.prepare(self._names)
            while not self._backend.is_prepared and not self._abandoned.wait(0.1):
                pass
        except BaseException as error:  # Raised again where the backend is wanted.
            self._error = error

    @property
    def is_over(self) -> bool:
        """Whether all have started, or failed to."""
        return not self._thread.is_alive()

    def taken(self) -> RayBackend:
        """Those that have started."""
        while self._thread.is_alive():  # Signals are heard meanwhile.
            time.sleep(0.05)
        if self._error is not None:
            raise self._error
        assert self._backend is not None
        return self._backend

    def abandon(self) -> None:
        """Nobody needs them any more."""
        self._abandoned.set()
        self._thread.join()
        if self._backend is not None:
            self._backend.close()

"""Several policy forwards at once: threads that take turns in waiting for the envs.

One thread at a time leads: it waits until envs have stepped, stores the steps and takes the envs
that wait for an action. Then the next thread leads, while this one asks the policy and acts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sized
from typing import Any

# A forward that sleeps this long (seconds), and longer than it computes, leaves time for another.
_WAITS = 0.0005
# So many of them in a row: what waits once may only have been pushed off its core.
_IN_A_ROW = 3

Lead = Callable[[], Sized | None]
Act = Callable[[Any], None]


class _Run:
    """What the threads share; a thread that is late never meddles with the next run."""

    def __init__(self, lead: Lead, act: Act) -> None:
        self.lead, self.act = lead, act
        self.over = False


class Turns:
    """`run` works in the calling thread and in helpers, which rest between two runs."""

    def __init__(self, threads: int | None, most: int) -> None:
        """`threads` forwards at once, or None: one, and more of them while they only wait."""
        self._most = most if threads is None else min(threads, most)
        self._adapts = threads is None
        self._waits = 0
        self._leading = threading.Lock()
        self._changed = threading.Condition()
        self._run: _Run | None = None
        self._working = 0  # helpers that have not come to rest
        self._error: BaseException | None = None
        self._helpers: list[threading.Thread] = []
        self._generation = 0  # of helpers; those of an older one end

    @property
    def threads(self) -> int:
        """Forwards that may run at once now, the caller's among them."""
        return 1 + len(self._helpers)

    def run(self, lead: Lead, act: Act, *, wait: bool = True) -> None:
        """`act(lead())` over and over until `lead` gives None; an empty answer means ask again.

        With `wait` all `act` have ended on return; else those of helpers may end later. What any
        thread raises ends the run and is raised here, or by whatever is called next.
        """
        run = _Run(lead, act)
        try:
            self._raise_error()
            with self._changed:
                self._run = run
                self._changed.notify_all()
            while not self._adapts and self.threads < self._most:
                self._add_helper()
            self._work(run)
            self._run = None
            if wait:
                self.settle()
            self._raise_error()
        except BaseException:
            run.over, self._run = True, None
            self.close()
            raise

    def settle(self) -> None:
        """Wait until all `act` have ended."""
        with self._changed:
            self._changed.wait_for(lambda: not self._working)
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self, run: _Run) -> None:
        while (found := self._next(run)) is not None:
            start, computed = time.perf_counter(), time.thread_time()
            run.act(found)
            computed = time.thread_time() - computed
            waited = time.perf_counter() - start - computed
            self._waits = self._waits + 1 if waited > max(_WAITS, computed) else 0

    def _next(self, run: _Run) -> Any:
        nobody_leads = not self._leading.locked()
        with self._leading:
            if nobody_leads and not run.over and self._pays_off():
                self._add_helper()  # All threads were in the policy as this one came back.
            while not run.over:
                found = run.lead()
                if found is None:
                    run.over = True
                elif len(found):
                    return found
        return None

    def _pays_off(self) -> bool:
        return self._waits >= _IN_A_ROW and self.threads < self._most

    def _add_helper(self) -> None:
        helper = threading.Thread(target=self._help, args=(self._generation,), daemon=True)
        with self._changed:
            helper.start()
            self._helpers.append(helper)

    def _help(self, generation: int) -> None:
        last: _Run | None = None
        while (run := self._run_after(last, generation)) is not None:
            last = run
            try:
                self._work(run)
            except BaseException as error:  # Raised again in the caller's thread.
                self._error = self._error or error
                run.over = True
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def _run_after(self, last: _Run | None, generation: int) -> _Run | None:
        """Rest until there is another run; None if this helper is not wanted any more."""

        def is_over() -> bool:
            return generation != self._generation or self._run not in (None, last)

        with self._changed:
            self._changed.wait_for(is_over)
            if generation != self._generation:
                return None
            self._working += 1
            return self._run

    def close(self) -> None:
        """End the helpers; a later run starts new ones."""
        with self._changed:
            helpers, self._helpers = self._helpers, []
            self._generation += 1
            self._changed.notify_all()
        for helper in helpers:
            _await_start(helper)
            if helper.is_alive():
                helper.join()
        self._waits = 0


def _await_start(thread: threading.Thread) -> None:
    """An interrupt may have come while it was started: it is there soon, or it never will."""
    until = time.monotonic() + 1.0
    while thread.ident is None and time.monotonic() < until:
        time.sleep(0.001)

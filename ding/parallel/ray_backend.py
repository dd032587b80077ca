"""Services as Ray actors, on this machine or on a cluster.

Actors are not restarted by Ray: the coordinator makes another one and knows that it is another.
Values that an actor returned outlive it; that is why services return what is large instead of
putting it somewhere themselves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from ding.parallel.backend import (
    AnswerLostError,
    Backend,
    Call,
    Factory,
    Order,
    ServiceFailedError,
    ServiceLostError,
)
from ding.parallel.cluster import Node, NotStartedError, start_here
from ding.utils.errors import DingError

logger = logging.getLogger(__name__)

Stop = Callable[[], bool]
_ATTEMPTS = 3
# Roles that nodes of a cluster offer room for; everything else is where the coordinator is.
_PLACED = ("collector", "learner")
_HEAD = {"node:__internal_head__": 0.001}
_ORDERS = {"name": "orders", "namespace": "ding"}


def never() -> bool:
    return False


def require_ray() -> None:
    if find_spec("ray") is None:
        raise DingError("parallel runs need Ray; install it with: pip install 'ding-engine[ray]'")


def connect(address: str, node: Node | None = None, stop: Stop = never) -> None:
    """Connect this process to the Ray at `address`, whose first node may be slow to register.

    Ray itself waits a while for a node, a minute by default, and raises then.
    """
    import ray

    refusals = (ConnectionError, RuntimeError, TimeoutError, ray.exceptions.RayError)
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            ray.init(address, namespace="ding", log_to_driver=False, logging_level=logging.ERROR)
            return
        except refusals as error:
            ray.shutdown()
            reason = error.__cause__ or error
            is_gone = node is not None and not node.is_alive
            if attempt == _ATTEMPTS or is_gone or stop():
                said = "" if node is None else f"\nRay's head said:\n{node.last_words}"
                raise (NotStartedError if is_gone else DingError)(
                    f"no node of the Ray at {address} answered in {attempt} attempt(s): {reason}; "
                    "start again when the machine is less busy, have each attempt wait longer "
                    "with RAY_gcs_server_request_timeout_seconds=300 in the environment, or "
                    f"train in one process (without --module parallel){said}"
                ) from error
            logger.warning("no node of the Ray at %s answers yet: %s", address, reason)


class RayBackend(Backend):
    """Services as actors of the Ray at `address`; the environment has the token of it."""

    def __init__(self, address: str, node: Node | None = None, stop: Stop = never) -> None:
        """`node`: the head of that Ray, if it is this run's own and ends with it.

        `stop` says whether to give up connecting.
        """
        require_ray()
        import ray

        self._ray, self._node = ray, node
        self.dashboard = None if node is None else node.dashboard
        try:
            connect(address, node, stop)
        except BaseException:
            self.close()
            raise
        self._prepared: dict[str, Any] = {}
        self._preparing: list[Any] = []

    @classmethod
    def here(cls, dashboard: bool = False, stop: Stop = never) -> RayBackend:
        """On this machine alone, reachable from here alone and only with a token."""
        require_ray()
        for _ in range(_ATTEMPTS - 1):
            try:
                return cls._with_head(dashboard, stop)
            except NotStartedError as error:
                if stop():
                    raise
                logger.warning("starting Ray again: %s", error)
        return cls._with_head(dashboard, stop)

    @classmethod
    def _with_head(cls, dashboard: bool, stop: Stop) -> RayBackend:
        """A head of its own, which is stopped again if anything fails."""
        node = start_here(dashboard)
        try:
            node.wait_until_up(stop)
            if stop():
                raise DingError("Ray is not wanted any more")
        except NotStartedError:  # It has stopped itself.
            raise
        except BaseException:
            node.stop()
            raise
        return cls(node.address, node, stop)

    def prepare(self, names: Sequence[str]) -> None:
        """Start processes for services of these names before they are wanted."""
        self._prepared = {name: self._hosted(name, "") for name in names}
        self._preparing = [host.prepare.remote() for host in self._prepared.values()]

    @property
    def is_prepared(self) -> bool:
        n = len(self._preparing)
        return n == 0 or len(self._ray.wait(self._preparing, num_returns=n, timeout=0)[0]) == n

    def spawn(self, name: str, factory: Factory, role: str = "") -> Any:
        host = self._prepared.pop(name, None) or self._hosted(name, role)
        host.become.remote(cloudpickle.dumps(factory))
        return host

    def _hosted(self, name: str, role: str) -> Any:
        # A class of that name: lists of processes then tell who is who.
        host: Any = type(name, (_Host,), {})
        # Without a claim on cores none is ever waited for; the operating system shares them out.
        options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0}
        return self._ray.remote(**options, **self._place(role))(host).remote()

    def _place(self, role: str) -> dict[str, Any]:
        """What Ray is told of where services of a role have to be."""
        return {}

    def call(self, service: Any, method: str, *args: Any) -> Call:
        large, small = service.call.options(num_returns=2).remote(method, *args)
        return Call(service, method, large, small)

    def wait(self, calls: Sequence[Call], timeout: float) -> list[Call]:
        by_ref = {call.small: call for call in calls}
        if not by_ref:
            time.sleep(timeout)
            return []
        refs = list(by_ref)
        done, _ = self._ray.wait(refs, num_returns=1, timeout=timeout)
        if done and len(refs) > 1:
            done, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        return [by_ref[ref] for ref in done]

    def result(self, call: Call) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(call.small)
        except errors.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, DingError):
                raise cause from None
            if isinstance(cause, errors.ObjectLostError):
                raise AnswerLostError(f"{call.method}: {cause}") from None
            raise ServiceFailedError(str(error)) from None
        except errors.ObjectLostError as error:
            raise AnswerLostError(f"{call.method}: {error}") from None
        except errors.RayError as error:
            raise ServiceLostError(f"{call.method}: {error}") from None

    def kill(self, service: Any) -> None:
        self._ray.kill(service)

    def close(self) -> None:
        self._ray.shutdown()
        if self._node is not None:
            self._node.stop()


class ClusterBackend(RayBackend):
    """A Ray whose nodes come and go, and say how many services of which role they have room for."""

    def __init__(self, address: str, node: Node | None = None, stop: Stop = never) -> None:
        super().__init__(address, node, stop)
        options = {"num_cpus": 0, "resources": _HEAD, **_ORDERS}
        self._orders: Any = self._ray.remote(_Orders).options(**options).remote()
        self._asked: Any = None

    def _place(self, role: str) -> dict[str, Any]:
        return {"resources": {f"ding_{role}": 1} if role in _PLACED else _HEAD}

    def held(self, call: Call) -> Any:
        # Where it is now, it is lost with that machine.
        return self._ray.put(self._ray.get(call.large))

    def room(self, role: str) -> int | None:
        ray: Any = self._ray
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return int(sum(resources.get(f"ding_{role}", 0) for resources in nodes))

    def orders(self) -> list[Order]:
        given: list[Any] = []
        if self._asked is not None and self._ray.wait([self._asked], timeout=0)[0]:
            given, self._asked = self._ray.get(self._asked), None
        if self._asked is None:
            self._asked = self._orders.take.remote()
        return [Order(**order) for order in given]


def give_order(address: str, order: Order) -> None:
    """Tell a run in the cluster at `address`; the environment has its token."""
    require_ray()
    import ray

    connect(address)
    try:
        ray.get(ray.get_actor(**_ORDERS).give.remote(asdict(order)), timeout=30)
    except ValueError as error:
        raise DingError(f"no run at {address} takes orders (yet)") from error
    finally:
        ray.shutdown()


class _Orders:
    """Where orders for a run are left."""

    def __init__(self) -> None:
        self._given: list[dict[str, Any]] = []

    def give(self, order: dict[str, Any]) -> None:
        self._given.append(order)

    def take(self) -> list[dict[str, Any]]:
        given, self._given = self._given, []
        return given


class _Host:
    """What an actor is: a service that is made when it is first called, so that errors are told."""

    def __init__(self) -> None:
        self._pickled = b""
        self._service: Any = None

    def prepare(self) -> None:
        """Import what takes long."""
        import ding.parallel.services  # noqa: F401

    def become(self, pickled: bytes) -> None:
        self._pickled = pickled

    def call(self, method: str, *args: Any) -> tuple[Any, Any]:
        if self._service is None:
            self._service = cloudpickle.loads(self._pickled)()
        return getattr(self._service, method)(*args)

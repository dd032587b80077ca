"""Two learners, each with half of every batch, do what one does with all of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ding.config.schema import deep_merge_dicts, to_easydict
from ding.parallel.services import LearnerService
from ding.pipeline.blueprint import Blueprint
from ding.policy import get_policy_cls
from ding.policy.sac import SACPolicy
from ding.torch_utils.distributed import GroupError
from ding.utils.errors import ConfigError

B, T = 16, 4
CLIP: dict[str, Any] = dict(grad_clip_type="clip_norm", grad_clip_value=0.1)
SMALL = dict(obs_shape=3, action_shape=4, encoder_hidden_size_list=[16])
CONTINUOUS = dict(
    obs_shape=3, action_shape=2, actor_head_hidden_size=16, critic_head_hidden_size=16
)
REPLAYED: dict[str, dict[str, Any]] = {
    "dqn": dict(model=SMALL, learn=dict(target_update_freq=2, **CLIP)),
    "c51": dict(model=SMALL, learn=dict(target_theta=0.1)),
    "sac": dict(model=CONTINUOUS, learn=dict(learning_rate_alpha=1e-2, **CLIP)),
    "impala": dict(model=SMALL, collect=dict(unroll_len=T)),
    "ppo_offpolicy": dict(model=SMALL, learn=dict(value_norm=True)),
    "r2d2": dict(
        model=SMALL,
        learn=dict(learning_rate=1e-3),
        burnin_step=1,
        learn_unroll_len=T - 1,
        nstep=2,
    ),
}


def blueprint(kind: str, seed: int = 0, **cfg: Any) -> Blueprint:
    cfg = deep_merge_dicts(dict(learn=dict(batch_size=B, learner=dict(type="base"))), cfg)
    policy = deep_merge_dicts(get_policy_cls(dict(type=kind)).default_config(), cfg)
    policy = to_easydict({**policy, "type": kind})
    return Blueprint(to_easydict(dict(policy=policy, exp_name="exp")), seed)


def steps_of(*shape: int, continuous: bool = False, seed: int = 0) -> dict[str, Any]:
    """Columns of whatever a policy may read, `shape` rows of them."""
    rng = np.random.default_rng(seed)
    normal = lambda *more: rng.standard_normal((*shape, *more)).astype(np.float32)  # noqa: E731
    done = rng.random(shape) < 0.3
    return {
        "obs": normal(3),
        "next_obs": normal(3),
        "action": np.tanh(normal(2)) if continuous else rng.integers(0, 4, shape),
        "logit": normal(4),
        "log_prob": 0.1 * normal() - 1.5,
        "value": normal(),
        "advantage": normal(),
        "return": 3 * normal(),
        "reward": normal(),
        "done": done,
        "end": done,
        "truncated": np.zeros(shape, bool),
        "discount": np.float32(0.9) * ~done,
    }


def batches_of(kind: str, n: int = 3, size: int = B) -> list[dict[str, Any]]:
    if kind not in ("impala", "r2d2"):
        return [steps_of(size, continuous=kind == "sac", seed=i) for i in range(n)]
    state = {key: np.zeros((size, 1, 1, 16), np.float32) for key in ("h", "c")}
    lengths = np.arange(size) % (size // 2) % T + 1  # as many steps in both halves
    sequence = {
        "prev_state": state,
        "mask": (np.arange(T) < lengths[:, None]).astype(np.float32),
        "begins": np.arange(T) == np.zeros((size, 1)),
    }
    return [{**steps_of(size, T, seed=i), **sequence} for i in range(n)]


@contextmanager
def learners(plan: Blueprint, world: int = 2) -> Iterator[list[LearnerService]]:
    """In threads, with nothing in common yet but the config."""
    with ExitStack() as stack:
        made = [LearnerService(plan, rank, world, in_threads=True) for rank in range(world)]
        for one in made:
            stack.enter_context(closing(one))
        yield made


def ask(services: Sequence[LearnerService], method: str, *args: Any) -> list[Any]:
    """The answers of all, who are asked at once."""
    with ThreadPoolExecutor(len(services)) as pool:
        return list(pool.map(lambda one: getattr(one, method)(*args), services))


def begin(services: Sequence[LearnerService]) -> None:
    meeting = services[0].open_group()[1]["meeting"]
    ask(services, "join_group", meeting)
    ask(services, "begin", "")


def weights(service: LearnerService) -> dict[str, torch.Tensor]:
    """All that learning changes."""
    policy = service._policy
    parts = (*policy.acting_parts.values(), *policy.learn_state.values())
    modules = [getattr(part, "module", part) for part in parts]
    return {
        f"{i}.{name}": tensor.clone()
        for i, module in enumerate(modules)
        if isinstance(module, torch.nn.Module)
        for name, tensor in module.state_dict().items()
    }


def largest_gap(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def compare(plan: Blueprint, method: str, *args: Any) -> list[Any]:
    """One learner and two end alike; returns what the two have answered."""
    with closing(LearnerService(plan)) as alone:
        alone.begin("")
        before = weights(alone)
        large, told = getattr(alone, method)(*args)
        wanted = weights(alone)
    with learners(plan) as both:
        begin(both)
        assert largest_gap(weights(both[0]), before) == 0
        assert largest_gap(weights(both[1]), before) == 0
        answers = ask(both, method, *args)
        first, second = (weights(one) for one in both)
    assert largest_gap(first, second) == 0
    assert largest_gap(first, before) > 1e-3
    assert largest_gap(first, wanted) < 2e-6
    assert [answer[1]["train_iter"] for answer in answers] == [told["train_iter"]] * 2
    assert answers[0][0].parts.keys() == large.parts.keys()
    assert answers[1][0] is None
    return answers


@pytest.mark.parametrize("kind", REPLAYED)
def test_two_with_halves_are_as_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def add_noise(_: Any, batch: Any) -> None:
        """The same for a row whoever has it."""
        batch["noise"] = 2 * torch.sin(9 * batch["action"])
        batch["next_noise"] = 2 * torch.sin(7 * batch["action"])

    monkeypatch.setattr(SACPolicy, "_add_noise", add_noise)
    compare(blueprint(kind, **REPLAYED[kind]), "learn", 0, [], batches_of(kind))


@pytest.mark.parametrize(
    ("kind", "learn", "n_update"),
    [
        ("ppo", dict(adv_norm=False, value_norm=True, epoch_per_collect=3), 3 * 3),
        ("a2c", {}, 3),
        ("ppg", dict(adv_norm=False, aux_freq=1, aux_train_epoch=1), 3 * 3),
    ],
)
def test_two_share_the_minibatches_of_a_collect(
    kind: str, learn: dict[str, Any], n_update: int
) -> None:
    """And the border between shares cuts no episode: advantages are computed anew."""
    plan = blueprint(kind, model=SMALL, learn=learn, collect=dict(n_sample=3 * B))
    parts = [steps_of(B + i, seed=i) for i in range(3)]
    answers = compare(plan, "learn_together", 0, [], *parts)
    assert answers[0][1]["train_iter"] == n_update


def test_sequences_of_any_number_make_as_many_minibatches_for_all() -> None:
    """How many depends on where episodes end, and some learner would wait for ever."""
    plan = blueprint(
        "ppo_recurrent",
        model={**SMALL, "encoder_hidden_size_list": [8]},
        learn_unroll_len=T,
        collect=dict(n_sample=96),
        learn=dict(batch_size=4, epoch_per_collect=2),
    )
    steps = steps_of(96)
    steps["end"][48:] = False
    state = {key: np.zeros((96, 1, 1, 8), np.float32) for key in ("h", "c")}
    with learners(plan) as both:
        begin(both)
        told = [
            small for _, small in ask(both, "learn_together", 0, [], {**steps, "prev_state": state})
        ]
        assert largest_gap(weights(both[0]), weights(both[1])) == 0
    assert told[0]["train_iter"] == told[1]["train_iter"] > 2


def test_priorities_are_those_of_the_shares() -> None:
    plan = blueprint("dqn", **REPLAYED["dqn"], priority=True)
    index = {
        "replay_buffer_idx": np.arange(B) + 100,
        "replay_unique_id": np.arange(B),
        "IS": np.ones(B, np.float32),
    }
    batches = [{**batch, **index} for batch in batches_of("dqn", 2)]
    with closing(LearnerService(plan)) as alone:
        wanted = alone.learn(0, [], batches)[1]["priorities"]
    answers = compare(plan, "learn", 0, [], batches)
    shares = [small["priorities"] for _, small in answers]
    for i in range(2):
        assert [share[i]["replay_buffer_idx"][0] for share in shares] == [100, 100 + B // 2]
        for key in wanted[i]:
            found = np.concatenate([share[i][key] for share in shares])
            assert found == pytest.approx(wanted[i][key], abs=1e-5)


def test_rank_0_writes_the_means_of_all() -> None:
    hook = dict(log_show_after_iter=2, save_ckpt_after_iter=100)
    plan = blueprint(
        "dqn", **deep_merge_dicts(REPLAYED["dqn"], dict(learn=dict(learner=dict(hook=hook))))
    )
    batches = batches_of("dqn", 3)
    with learners(plan) as both:
        begin(both)
        shown: list[Any] = []
        both[0]._learner.log.scalars = lambda values, step: shown.append((step, values))  # type: ignore[method-assign]
        losses: list[list[float]] = [[], []]
        for one, own in zip(both, losses, strict=True):
            train = one._learner.train
            one._learner.train = lambda *a, t=train, o=own: o.extend(  # type: ignore[method-assign]
                float(out["total_loss"]) for out in t(*a)
            )
        ask(both, "learn", -1, [], batches)
        both[0].save("saved.pth.tar")
        both[0].checkpoint()
    assert losses[0] != losses[1]
    assert [step for step, _ in shown] == [0, 2]
    mean = np.mean([own[1:] for own in losses])
    assert shown[1][1]["learner_iter/total_loss_avg"] == pytest.approx(mean, rel=1e-5)
    logs = sorted(str(p.relative_to("exp")) for p in Path("exp").rglob("*") if p.is_file())
    assert logs == [
        "ckpt/iteration_0.pth.tar",
        "ckpt/iteration_3.pth.tar",
        "log/learner/learner_logger.txt",
    ]


def test_another_takes_the_place_of_one_that_is_gone() -> None:
    plan, batches = blueprint("dqn", **REPLAYED["dqn"]), batches_of("dqn", 2)
    with learners(plan) as both:
        begin(both)
        ask(both, "learn", 0, [], batches)
        state = both[0].state()[0]
        both[1].close()
        with pytest.raises(GroupError, match="another learner is gone"):
            both[0].learn(0, [], batches)
        fresh = LearnerService(plan, 1, 2, in_threads=True)
        with closing(fresh):
            pair = [both[0], fresh]
            ask(pair, "join_group", both[0].open_group()[1]["meeting"])
            ask(pair, "restore", state, 2)
            ask(pair, "learn", 0, [], batches)
            assert largest_gap(weights(both[0]), weights(fresh)) == 0
            found = weights(fresh)
    with closing(LearnerService(plan)) as alone:
        alone.learn(0, [], batches * 2)
        assert largest_gap(weights(alone), found) < 2e-6


def test_noise_differs_between_ranks() -> None:
    plan = blueprint("dqn", **REPLAYED["dqn"])
    drawn = []
    for rank in range(2):
        with closing(LearnerService(plan, rank, 2)):
            drawn.append(torch.rand(3).tolist())
    with closing(LearnerService(plan)):
        assert torch.rand(3).tolist() == drawn[0]
    assert drawn[0] != drawn[1]


# --- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cfg", "message"),
    [
        (dict(learn=dict(compile=True)), r"policy\.learn\.compile = True.*learner_num = 1"),
        (dict(learn=dict(batch_size=15)), r"policy\.learn\.batch_size = 15.*set it to 16"),
        (dict(bp_update_sync=False), r"policy\.bp_update_sync = False"),
        (dict(model=dict(norm_type="BN")), r"BatchNorm1d.*norm_type = 'LN'"),
    ],
)
def test_refused(cfg: dict[str, Any], message: str) -> None:
    plan = blueprint("dqn", **deep_merge_dicts(dict(model=SMALL), cfg))
    with pytest.raises(ConfigError, match=message):
        LearnerService(plan, 1, 2)
    LearnerService(plan).close()


def test_optimizers_that_know_no_group_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def sgd(params: Any, lr: float, **_: Any) -> torch.optim.SGD:
        return torch.optim.SGD(params, lr=lr)

    monkeypatch.setattr("ding.policy.dqn.Adam", sgd)
    with pytest.raises(ConfigError, match=r"SGD.*ding\.torch_utils"):
        LearnerService(blueprint("dqn", model=SMALL), 0, 2)


def test_batches_that_can_not_be_halved_are_refused() -> None:
    with learners(blueprint("dqn", model=SMALL)) as both:
        with pytest.raises(GroupError, match="join_group"):
            both[0].learn(0, [], batches_of("dqn"))
        begin(both)
        for one in both:
            with pytest.raises(ConfigError, match="batch_size = 7"):
                one.learn(0, [], [steps_of(7)])


# --- processes -----------------------------------------------------------------------------------


def _in_process(rank: int, pipe: Connection) -> None:
    torch.set_num_threads(1)
    with closing(LearnerService(blueprint("dqn", **REPLAYED["dqn"]), rank, 2)) as service:
        while (asked := pipe.recv()) is not None:
            try:
                pipe.send(getattr(service, asked[0])(*asked[1:]))
            except GroupError as error:
                pipe.send(str(error))


def test_processes_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])  # they import this file
    context = multiprocessing.get_context("spawn")
    pairs = [context.Pipe() for _ in range(2)]
    pipes = [mine for mine, _ in pairs]
    processes = [
        context.Process(target=_in_process, args=(rank, theirs))
        for rank, (_, theirs) in enumerate(pairs)
    ]
    for process in processes:
        process.start()

    def answers(method: str, *args: Any) -> list[Any]:
        for pipe in pipes:
            pipe.send((method, *args))
        assert all(pipe.poll(60) for pipe in pipes)
        return [pipe.recv() for pipe in pipes]

    try:
        pipes[0].send(("open_group",))
        answers("join_group", pipes[0].recv()[1]["meeting"])
        answers("begin", "")
        batches = batches_of("dqn")
        first, second = answers("learn", 0, [], batches)
        with closing(LearnerService(blueprint("dqn", **REPLAYED["dqn"]))) as alone:
            wanted = alone.learn(0, [], batches)[0]
        for name, value in wanted.parts["model"].items():
            assert first[0].parts["model"][name] == pytest.approx(value, abs=2e-6)
        assert second == (None, {"train_iter": 3, "priorities": []})
        assert processes[1].pid is not None
        os.kill(processes[1].pid, signal.SIGKILL)
        began = time.monotonic()
        pipes[0].send(("learn", 0, [], batches))
        assert pipes[0].poll(20)
        assert "another learner is gone" in pipes[0].recv()
        assert time.monotonic() - began < 10
        pipes[0].send(None)
    finally:
        for process in processes:
            process.join(5)
            process.kill()
            process.join()


@pytest.mark.parametrize("kind", ["ppo", "sqn"])
def test_collectors_act_with_all_that_the_learner_has_learned(kind: str) -> None:
    """Not with its weights alone: with its return scale and its temperature, too."""
    plan = blueprint(kind, model=SMALL)
    with closing(LearnerService(plan)) as learner:
        learner.begin("")
        policy: Any = learner._policy
        if kind == "ppo":
            policy._return_scale.update(np.array([0.0, 9.12], dtype=np.float32))
        else:
            policy._temperature.log_alpha.data.fill_(-1.9)
        state, _ = learner._answer([])
    elsewhere = plan.policy("collect", 5)
    elsewhere.load_acting_state(state)
    if kind == "ppo":
        assert elsewhere._return_scale.std == pytest.approx(4.56)
    else:
        assert elsewhere._alpha == pytest.approx(np.exp(-1.9))

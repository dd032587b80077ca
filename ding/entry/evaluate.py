"""Using a trained policy: evaluate it, or let it play for demonstrations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ding.config import compile_config
from ding.envs import get_vec_env_setting, manager_of
from ding.pipeline.assemble import EnvSetting
from ding.pipeline.run import ConfigLike, read_input
from ding.pipeline.spaces import fit_model_to_env
from ding.pipeline.state import runs_of
from ding.policy import Policy, create_policy
from ding.policy.modes import CollectMode, EvalMode
from ding.utils.batch import Rows, columns_of, concat, take
from ding.utils.checkpoint import load_checkpoint, save_checkpoint
from ding.utils.errors import CheckpointError
from ding.utils.seed import set_pkg_seed
from ding.worker import EvalResult, create_serial_collector, create_serial_evaluator


def eval(
    input_cfg: ConfigLike,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    load_path: str | Path | None = None,
    replay_path: str | Path | None = None,
) -> float:
    """Mean return of a trained policy; `replay_path` is where videos of the episodes go."""
    reward = evaluate(
        input_cfg,
        seed,
        env_setting=env_setting,
        model=model,
        state_dict=state_dict,
        load_path=load_path,
        replay_path=replay_path,
    ).reward
    return sum(reward) / len(reward)


def evaluate(
    input_cfg: ConfigLike,
    seed: int = 0,
    *,
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    load_path: str | Path | None = None,
    replay_path: str | Path | None = None,
) -> EvalResult:
    """The same with the returns of all episodes."""
    cfg, env, policy = _prepared(input_cfg, seed, env_setting, model, evaluating=True)
    with env:
        _load(policy, policy.eval_mode, state_dict, cfg, load_path)
        if replay_path is not None:
            env.enable_save_replay(str(replay_path))
        with create_serial_evaluator(
            cfg.policy.eval.evaluator, env=env, policy=policy.eval_mode, exp_name=cfg.exp_name
        ) as evaluator:
            return evaluator.eval()


def collect_demo_data(  # noqa: PLR0913 (established signature)
    input_cfg: ConfigLike,
    seed: int = 0,
    collect_count: int = 1000,
    expert_data_path: str | Path = "demo_data.pth.tar",
    env_setting: EnvSetting | None = None,
    model: nn.Module | None = None,
    state_dict: Mapping[str, Any] | None = None,
    state_dict_path: str | Path | None = None,
) -> list[Any]:
    """Let a trained policy collect samples; they are saved and returned."""
    cfg, env, policy = _prepared(input_cfg, seed, env_setting, model, evaluating=False)
    with env:
        _load(policy, policy.collect_mode, state_dict, cfg, state_dict_path)
        # Demonstrations show what was learned: explore as little as the policy ever does.
        kwargs = policy.command_mode.get_setting_collect({"learner_step": 0, "envstep": 10**10})
        with create_serial_collector(
            {**cfg.policy.collect.collector, "get_train_sample": True}
            if cfg.policy.collect.collector.type == "episode"
            else cfg.policy.collect.collector,
            env=env,
            policy=policy.collect_mode,
            exp_name=cfg.exp_name,
        ) as collector:
            samples = _collected(collector, collect_count, kwargs)
    save_checkpoint(expert_data_path, {"samples": columns_of(samples)})
    return samples


def load_demo_data(path: str | Path) -> list[Any]:
    """What `collect_demo_data` saved, as a list of samples."""
    return Rows(load_checkpoint(path)["samples"])


def _collected(collector: Any, count: int, kwargs: Mapping[str, Any]) -> list[Any]:
    parts: list[Any] = []
    while sum(len(part["done"]) for part in parts) < count:
        parts.append(columns_of(collector.collect(policy_kwargs=kwargs)))
    return Rows(take(concat(parts), slice(0, count)))


def _prepared(
    input_cfg: ConfigLike,
    seed: int,
    env_setting: EnvSetting | None,
    model: nn.Module | None,
    evaluating: bool,
) -> tuple[Any, Any, Policy]:
    """Config, launched env manager and policy."""
    main, create, _ = read_input(input_cfg)
    cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
    set_pkg_seed(seed, use_cuda=cfg.policy.cuda)
    env_fn, collector_cfg, evaluator_cfg = env_setting or get_vec_env_setting(cfg.env)
    env_cfgs = evaluator_cfg if evaluating else collector_cfg
    env = manager_of(cfg.env.manager, env_fn, env_cfgs)
    env.seed(seed, dynamic_seed=not evaluating)
    if model is None and "type" not in cfg.policy.model:
        fit_model_to_env(cfg.policy, env)
    field = ["eval"] if evaluating else ["collect", "command"]
    return cfg, env, create_policy(cfg.policy, model=model, enable_field=field)


def _load(
    policy: Policy,
    mode: EvalMode | CollectMode,
    state_dict: Mapping[str, Any] | None,
    cfg: Any,
    path: str | Path | None,
) -> None:
    """Load the weights given, or else those of a checkpoint, and see whether they are numbers."""
    source = "the state_dict"
    if state_dict is None:
        found = _checkpoint_path(cfg, path)
        source, state_dict = f"checkpoint '{found}'", load_checkpoint(found)
    mode.load_state_dict(dict(state_dict))
    bad = policy.acting_parts.not_finite()
    if bad:
        more = f" and {len(bad) - 1} more" if bad[1:] else ""
        raise CheckpointError(
            f"{source} has NaN or infinite weights ({bad[0]}{more}): the training had diverged "
            "when it was saved; use an older checkpoint"
        )


def _checkpoint_path(cfg: Any, given: str | Path | None) -> Path:
    """The checkpoint that is named, or else the best one of the newest run of this name."""
    named = given or cfg.policy.load_path or cfg.policy.learn.learner.hook.load_ckpt_before_run
    if named:
        return Path(named)
    best = [run / "ckpt" / "ckpt_best.pth.tar" for run in runs_of(cfg.exp_name)]
    found = [path for path in best if path.is_file()]
    if not found:
        raise CheckpointError(
            f"no checkpoint given, and no '{best[0]}' here; train first, or name one with "
            "--load-path"
        )
    return max(found, key=lambda path: path.stat().st_mtime)

"""A trained policy with its envs, as evaluating it and letting it demonstrate need them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from ding.config import compile_config, override
from ding.entry.parallel_config import in_one_process
from ding.envs import manager_of
from ding.pipeline.assemble import EnvSetting, env_setting_of
from ding.pipeline.run import ConfigLike, read_input
from ding.pipeline.spaces import fit_model_to_env
from ding.pipeline.state import runs_of
from ding.policy import Policy, create_policy
from ding.policy.modes import CollectMode, EvalMode
from ding.policy.user_model import fitted_model
from ding.utils.checkpoint import load_checkpoint
from ding.utils.errors import CheckpointError
from ding.utils.seed import set_pkg_seed


def prepared(
    input_cfg: ConfigLike,
    seed: int,
    env_setting: EnvSetting | None,
    model: nn.Module | None,
    *,
    evaluating: bool,
    most_envs: int | None = None,
) -> tuple[Any, Any, Policy]:
    """Config, launched env manager and policy."""
    main, create = in_one_process(*read_input(input_cfg))
    main = override(main, {"seed": seed})  # that of the training says nothing about these episodes
    cfg = compile_config(main, seed=seed, auto=True, create_cfg=create, save_cfg=False)
    set_pkg_seed(seed, use_cuda=cfg.policy.cuda)
    env_fn, collector_cfg, evaluator_cfg = env_setting_of(cfg, env_setting)
    env_cfgs = (evaluator_cfg if evaluating else collector_cfg) or []
    env = manager_of(cfg.env.manager, env_fn, env_cfgs[:most_envs])
    env.seed(seed, dynamic_seed=not evaluating)
    fit_model_to_env(cfg.policy, env, has_model=model is not None)
    model = fitted_model(model, cfg.policy, env.observation_space, env.action_space)
    field = ["eval"] if evaluating else ["collect", "command"]
    return cfg, env, create_policy(cfg.policy, model=model, enable_field=field)


def load_weights(
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

"""Loading agents: from a run, a checkpoint or a bundle file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ding.agent.agent import Agent
from ding.agent.bundle import is_bundle, read_bundle
from ding.agent.card import card_of
from ding.config import compile_config, override, read_config
from ding.policy import ActingState
from ding.utils.checkpoint import load_checkpoint
from ding.utils.errors import CheckpointError, DingError

CONFIG = "total_config.py"


def load(
    path: str | Path,
    *,
    model: Any = None,
    device: str = "cpu",
    seed: int = 0,
    trusted: bool = False,
) -> Agent:
    """The agent of a run's directory (its best checkpoint), of a checkpoint, or of a bundle.

    `model` is needed where the run was given one. `seed` is that of drawn actions. Only `trusted`
    bundles may have modules imported that are not there yet.
    """
    path = Path(path)
    if not path.exists():
        raise CheckpointError(
            f"there is nothing at '{path}'; load the directory of a run, a checkpoint "
            "(.pth.tar) or a bundle (.ding)"
        )
    if device not in ("cpu", "cuda"):
        raise DingError(f"device = {device!r}: an agent acts on 'cpu' or 'cuda'")
    if path.is_file() and is_bundle(path):
        card, parts = read_bundle(path, trusted=trusted)
        card.policy.update(cuda=device == "cuda", multi_gpu=False)
        agent = Agent(card, model=model, seed=seed)
        agent.policy.load_acting_state(ActingState(0, parts))
        return agent
    checkpoint = best_checkpoint(path) if path.is_dir() else path
    return _of_checkpoint(checkpoint, model, device, seed)


def _of_checkpoint(checkpoint: Path, model: Any, device: str, seed: int) -> Agent:
    state = _read_checkpoint(checkpoint)
    run = run_of(checkpoint)
    main, create = read_config(run / CONFIG)
    main = override(main, {"policy.cuda": device == "cuda", "policy.multi_gpu": False})
    cfg = compile_config(main, auto=True, create_cfg=create, save_cfg=False, seed=main["seed"])
    agent = Agent(card_of(cfg, run, _progress(run, state)), model=model, seed=seed)
    agent.policy.eval_mode.load_state_dict(state)
    _check_finite(agent, f"checkpoint '{checkpoint}'")
    return agent


def _read_checkpoint(path: Path) -> dict[str, Any]:
    try:
        state = load_checkpoint(path)
    except CheckpointError as error:
        raise CheckpointError(
            f"'{path}' is neither a whole checkpoint (.pth.tar) nor a bundle (.ding), which is a "
            f"zip with an agent.json: {error}"
        ) from error
    if "model" not in state:
        raise CheckpointError(
            f"'{path}' is no checkpoint of a policy: it holds {sorted(map(str, state))[:8]} "
            "and no 'model'; those of a run are ckpt/ckpt_best.pth.tar and ckpt/iteration_*.pth.tar"
        )
    return state


def best_checkpoint(run: Path) -> Path:
    """The best one of a run, or else the newest."""
    best = run / "ckpt" / "ckpt_best.pth.tar"
    if best.is_file():
        return best
    others = sorted(run.glob("ckpt/iteration_*.pth.tar"), key=lambda p: p.stat().st_mtime)
    if others:
        return others[-1]
    inner = sorted(p.parent.name for p in run.glob(f"*/{CONFIG}"))
    within = f"; the runs in it are {', '.join(inner[:8])}: load one of them" if inner else ""
    raise CheckpointError(f"'{run}' has no ckpt/ckpt_best.pth.tar, so it is not a run{within}")


def run_of(checkpoint: Path) -> Path:
    """Directory of the run that a checkpoint belongs to."""
    for directory in list(checkpoint.absolute().parents)[:2]:
        if (directory / CONFIG).is_file():
            return directory
    raise CheckpointError(
        f"checkpoint '{checkpoint}' has weights only, and no {CONFIG} lies beside it or in the "
        "directory above: load it where its run left it, or save the agent there as one file "
        "(agent.save) and load that"
    )


def _progress(run: Path, state: dict[str, Any]) -> dict[str, Any]:
    known = {"train_iter": state.get("last_iter"), "env_step": state.get("last_step")}
    result = run / "result.json"
    if result.is_file():
        known["best"] = json.loads(result.read_text(encoding="utf-8")).get("best_value")
    return {key: value for key, value in known.items() if value is not None}


def _check_finite(agent: Agent, source: str) -> None:
    bad = agent.policy.acting_parts.not_finite()
    if bad:
        raise CheckpointError(
            f"{source} has NaN or infinite weights ({bad[0]}): the training had diverged when it "
            "was saved; use an older checkpoint"
        )

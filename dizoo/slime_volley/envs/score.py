"""What is told of games: how fast they go, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ding.envs.two_player import LOSSES, WINS, results_of
from dizoo.slime_volley.envs.volley import FRAME, MOVES

METADATA = {"render_fps": 1 / FRAME}


def last_info(points: Sequence[int]) -> dict[str, Any]:
    """Of a game with these points of both players."""
    score = np.float32(points[0] - points[1])
    returns = np.array([score, -score], dtype=np.float32)
    return {"eval_episode_return": returns, "result": results_of(returns)}


def forfeit_info(moves: Sequence[int], lives: int) -> dict[str, Any]:
    """Whoever moves illegally, the first one if both do, loses all rallies that are left."""
    loser = next(seat for seat, move in enumerate(moves) if not 0 <= move < len(MOVES))
    returns = np.full(2, lives, dtype=np.float32)
    returns[loser] *= -1
    result = [LOSSES, WINS] if loser == 0 else [WINS, LOSSES]
    reason = f"move {moves[loser]} of player {loser} is illegal"
    info = {"eval_episode_return": returns, "result": result}
    return {**info, "forfeit": loser, "reason": reason}

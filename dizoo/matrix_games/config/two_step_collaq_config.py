"""CollaQ on the two-step game: 8, as QMIX; what agents see of others is where a move has led."""

from ding.config import override
from dizoo.matrix_games.config import two_step_qmix_config as qmix

main_config = override(
    qmix.main_config,
    {
        "exp_name": "two_step_collaq_seed0",
        "env.obs_alone": True,
        "env.ally_feature_range": [0, 3],
    },
)
create_config = {**qmix.create_config, "policy": dict(type="collaq")}

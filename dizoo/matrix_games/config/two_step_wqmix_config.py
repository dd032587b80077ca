"""WQMIX on the two-step game: 8, as QMIX."""

from ding.config import override
from dizoo.matrix_games.config import two_step_qmix_config as qmix

main_config = two_step_wqmix_config = override(
    qmix.main_config,
    {
        "exp_name": "two_step_wqmix_seed0",
    },
)
create_config = two_step_wqmix_create_config = override(
    qmix.create_config, {"policy.type": "wqmix"}
)

"""QTRAN on the two-step game: 8; weights of all errors are 1."""

from ding.config import override
from dizoo.matrix_games.config import two_step_qmix_config as qmix

main_config = two_step_qtran_config = override(
    qmix.main_config,
    {
        "exp_name": "two_step_qtran_seed0",
        "policy.learn.opt_weight": 1.0,
        "policy.learn.nopt_min_weight": 1.0,
    },
)
create_config = two_step_qtran_create_config = override(
    qmix.create_config, {"policy.type": "qtran"}
)

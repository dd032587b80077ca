"""QTRAN on the matrix of its paper: it finds the 8; weights of all errors are 1, as there."""

from ding.config import override
from dizoo.matrix_games.config import qtran_matrix_qmix_config as qmix

main_config = qtran_matrix_qtran_config = override(
    qmix.main_config,
    {
        "exp_name": "qtran_matrix_qtran_seed0",
        "env.stop_value": 8,
        "policy.learn.opt_weight": 1.0,
        "policy.learn.nopt_min_weight": 1.0,
    },
)
create_config = qtran_matrix_qtran_create_config = override(
    qmix.create_config, {"policy.type": "qtran"}
)

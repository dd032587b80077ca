"""WQMIX on the matrix of the QTRAN paper: it finds the 8, where QMIX settles for 0."""

from ding.config import override
from dizoo.matrix_games.config import qtran_matrix_qmix_config as qmix

main_config = qtran_matrix_wqmix_config = override(
    qmix.main_config,
    {
        "exp_name": "qtran_matrix_wqmix_seed0",
        "env.stop_value": 8,
        "policy.learn.alpha": 0.1,
    },
)
create_config = qtran_matrix_wqmix_create_config = override(
    qmix.create_config, {"policy.type": "wqmix"}
)

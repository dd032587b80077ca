"""QPLEX on the matrix of the QTRAN paper: it finds the 8, where QMIX and VDN settle for 0."""

from ding.config import override
from dizoo.matrix_games.config import qtran_matrix_qmix_config as qmix

main_config = qtran_matrix_qplex_config = override(
    qmix.main_config,
    {
        "exp_name": "qtran_matrix_qplex_seed0",
        "env.stop_value": 8,
        "policy.model.mixing_embed_dim": 128,
        "policy.learn.batch_size": 128,
        "policy.learn.optim_type": "rmsprop",
    },
)
create_config = qtran_matrix_qplex_create_config = override(
    qmix.create_config, {"policy.type": "qplex"}
)

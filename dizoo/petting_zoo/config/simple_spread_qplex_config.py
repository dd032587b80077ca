"""QPLEX on simple_spread (mpe2), with the settings of QMIX; returns are on the documented scale."""

from ding.config import override
from dizoo.petting_zoo.config import simple_spread_qmix_config as qmix

main_config = simple_spread_qplex_config = override(
    qmix.main_config, {"exp_name": "simple_spread_qplex_seed0"}
)
create_config = simple_spread_qplex_create_config = override(
    qmix.create_config, {"policy.type": "qplex"}
)

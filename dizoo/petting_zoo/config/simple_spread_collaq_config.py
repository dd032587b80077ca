"""CollaQ on simple_spread (mpe2) as QMIX is; returns are on the documented scale."""

from ding.config import override
from dizoo.petting_zoo.config import simple_spread_qmix_config as qmix

main_config = override(
    qmix.main_config,
    {
        "exp_name": "simple_spread_collaq_seed0",
        "env.obs_alone": True,
    },
)
create_config = {**qmix.create_config, "policy": dict(type="collaq")}

"""QTRAN on simple_spread (mpe2), with the settings of VDN; returns are on the documented scale."""

from ding.config import override
from dizoo.petting_zoo.config import simple_spread_vdn_config as vdn

main_config = simple_spread_qtran_config = override(
    vdn.main_config,
    {
        "exp_name": "simple_spread_qtran_seed0",
    },
)
create_config = {**vdn.create_config, "policy": dict(type="qtran")}

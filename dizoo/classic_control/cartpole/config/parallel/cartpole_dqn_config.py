"""DQN on CartPole with two collectors, for `ding -m parallel` and `parallel_pipeline`."""

from ding.config import override
from dizoo.classic_control.cartpole.config import cartpole_dqn_config as serial

main_config = override(
    serial.main_config,
    {
        "exp_name": "cartpole_dqn_parallel_seed0",
        "policy.collect.collector.collector_num": 2,
    },
)
create_config = serial.create_config
system_config: dict[str, object] = {}

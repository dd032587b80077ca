"""A league on slime volley: a main player and two kinds of exploiter, all PPO."""

from ding.config import override
from dizoo.slime_volley.config import slime_volley_ppo_config as selfplay

main_config = slime_volley_league_ppo_config = override(
    selfplay.main_config,
    {
        "exp_name": "slime_volley_league_ppo_seed0",
        "policy.collect.n_sample": None,
        "env.collector_env_num": 64,
        "policy.collect.n_episode": 64,
        "policy.collect.collector": {},
    },
)
main_config["league"] = dict(
    active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
    main_player=dict(one_phase_step=1000),
    main_exploiter=dict(one_phase_step=1000),
    league_exploiter=dict(one_phase_step=1000),
)
create_config = slime_volley_league_ppo_create_config = override(
    selfplay.create_config, {"collector.type": "episode_1v1"}
)

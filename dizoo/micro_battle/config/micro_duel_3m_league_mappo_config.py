"""A league on the battle 3m of two teams: a main player and two kinds of exploiter, all MAPPO."""

from ding.config import override
from dizoo.micro_battle.config import micro_duel_3m_mappo_config as selfplay

main_config = micro_duel_3m_league_mappo_config = override(
    selfplay.main_config,
    {"exp_name": "micro_duel_3m_league_mappo_seed0", "policy.collect.collector": {}},
)
main_config["league"] = dict(
    active_players=dict(main_player=1, main_exploiter=1, league_exploiter=1),
    main_player=dict(one_phase_step=200),
    main_exploiter=dict(one_phase_step=200),
    league_exploiter=dict(one_phase_step=200),
)
create_config = micro_duel_3m_league_mappo_create_config = selfplay.create_config

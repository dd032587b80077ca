"""MAPPO on speaker_listener (mpe2): one sees the goal and speaks, the other hears and moves.

Returns are those of one agent (both get the same), the scale of the published results: random
actions give -43, a listener that knows the goal -8. The agents differ in what they see and do:
observations are filled up with zeros, and masks forbid the speaker what only the listener can do.
`ding -m serial -e speaker_listener -p mappo -s 0` evaluates at -9.0 after 160,000 joint steps.
"""

from easydict import EasyDict

main_config = speaker_listener_mappo_config = EasyDict(
    exp_name="speaker_listener_mappo_seed0",
    env=dict(
        env_family="mpe",
        env_id="simple_speaker_listener_v4",
        max_cycles=25,
        pad_agents=True,
        obs_agent_id=True,
        reward="mean",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=96,
        stop_value=-11,
    ),
    policy=dict(
        model=dict(
            actor_head_hidden_size=128,
            actor_head_layer_num=1,
            critic_head_hidden_size=128,
            critic_head_layer_num=1,
        ),
        discount_factor=0.95,
        learn=dict(
            epoch_per_collect=10,
            batch_size=400,
            learning_rate=0.0007,
            entropy_weight=0.01,
        ),
        collect=dict(n_sample=1600),
        eval=dict(evaluator=dict(eval_freq=1000)),
    ),
)

create_config = speaker_listener_mappo_create_config = EasyDict(
    env=dict(type="pettingzoo", import_names=["ding.envs.pettingzoo_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="mappo"),
)

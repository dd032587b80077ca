"""TD3 with hindsight: without it a goal is hardly ever reached."""

from easydict import EasyDict

main_config = reach_her_td3_config = EasyDict(
    exp_name="reach_her_td3_seed0",
    env=dict(
        collector_env_num=4,
        evaluator_env_num=10,
        n_evaluator_episode=50,
        # A goal is 8 steps away on average; -50 is one that was never reached.
        stop_value=-9,
    ),
    policy=dict(
        random_collect_size=500,
        discount_factor=0.95,
        model=dict(
            encoder_hidden_size_list=[64],
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            update_per_collect=4,
            batch_size=128,
            learning_rate_actor=0.001,
            learning_rate_critic=0.001,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            her=dict(her_strategy="future", her_replay_k=4),
            replay_buffer=dict(replay_buffer_size=50_000),
        ),
    ),
)

create_config = reach_her_td3_create_config = EasyDict(
    env=dict(type="reach", import_names=["dizoo.toy.reach.envs.reach_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="td3"),
)

"""DQN with hindsight on 15 bits: random play reaches one goal in 2,500 episodes."""

from easydict import EasyDict

main_config = bitflip_her_dqn_config = EasyDict(
    exp_name="bitflip_her_dqn_seed0",
    env=dict(
        n_bits=15,
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=0.95,
    ),
    policy=dict(
        model=dict(encoder_hidden_size_list=[256, 256], dueling=False),
        discount_factor=0.98,
        learn=dict(
            update_per_collect=8, batch_size=128, learning_rate=0.001, target_update_freq=200
        ),
        collect=dict(n_sample=40),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            her=dict(
                her_strategy="future",
                her_replay_k=4,
                ends_at_goal=True,
                split_func="dizoo.bitflip.envs.bitflip_env:split_goal",
                merge_func="dizoo.bitflip.envs.bitflip_env:merge_goal",
                goal_reward_func="dizoo.bitflip.envs.bitflip_env:goal_reward",
            ),
            eps=dict(type="linear", start=0.5, end=0.05, decay=20_000),
            replay_buffer=dict(replay_buffer_size=100_000),
        ),
    ),
)

create_config = bitflip_her_dqn_create_config = EasyDict(
    env=dict(type="bitflip", import_names=["dizoo.bitflip.envs.bitflip_env"]),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)

"""SAC on Hopper."""

from easydict import EasyDict

main_config = hopper_sac_config = EasyDict(
    exp_name="hopper_sac_seed0",
    env=dict(
        env_id="Hopper-v5",
        collector_env_num=1,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=3000,
    ),
    policy=dict(
        model=dict(
            obs_shape=11,
            action_shape=3,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        random_collect_size=10000,
        learn=dict(batch_size=256, learning_rate_q=0.001),
        collect=dict(n_sample=1),
        eval=dict(evaluator=dict(eval_freq=10000)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    ),
)

create_config = hopper_sac_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="sac")
)

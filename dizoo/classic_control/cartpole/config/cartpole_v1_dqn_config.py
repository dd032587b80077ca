"""DQN on CartPole-v1 (episodes of 500 steps), by env id alone."""

main_config = dict(
    exp_name="cartpole_v1_dqn_seed0",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=8,
        n_evaluator_episode=8,
        stop_value=475,
    ),
    policy=dict(
        model=dict(encoder_hidden_size_list=[128, 128, 64], dueling=True),
        nstep=3,
        discount_factor=0.99,
        learn=dict(
            update_per_collect=4, batch_size=128, learning_rate=0.0005, target_update_freq=200
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            eps=dict(type="linear", start=1.0, end=0.05, decay=10000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = dict(env_manager=dict(type="base"), policy=dict(type="dqn"))

"""Recurrent PPO on CartPole-v1 without velocities: what is seen of one step does not do."""

from easydict import EasyDict

main_config = cartpole_no_velocity_ppo_recurrent_config = EasyDict(
    exp_name="cartpole_no_velocity_ppo_recurrent_seed0",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=485,  # a margin over the usual 475, so that other starts reach that too
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=2,
            action_shape=2,
            encoder_hidden_size_list=[64],
            lstm_type="gru",
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.98,
        learn_unroll_len=16,
        learn=dict(epoch_per_collect=10, batch_size=16, learning_rate=0.001),
        collect=dict(n_sample=1024, gae_lambda=0.9),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = cartpole_no_velocity_ppo_recurrent_create_config = EasyDict(
    env=dict(
        type="cartpole_no_velocity",
        import_names=["dizoo.classic_control.cartpole.envs.no_velocity_env"],
    ),
    env_manager=dict(type="base"),
    policy=dict(type="ppo_recurrent"),
)

"""PPO on MountainCar."""

from easydict import EasyDict

main_config = mountain_car_ppo_config = EasyDict(
    exp_name="mountain_car_ppo_seed0",
    env=dict(
        env_id="MountainCar-v0",
        # At first the car hardly moves: the critic has to tell apart what differs by little. With
        # observations in [0, 1] it stood at -200 after 600,000 env steps.
        env_wrapper=[dict(type="rescale_obs", kwargs=dict(low=-5.0, high=5.0))],
        collector_env_num=16,
        evaluator_env_num=20,
        n_evaluator_episode=100,
        stop_value=-108,  # a margin over the usual -110, so that other starts reach that too
    ),
    policy=dict(
        action_space="discrete",
        model=dict(
            obs_shape=2,
            action_shape=3,
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
            actor_head_layer_num=0,
            critic_head_layer_num=0,
            activation="tanh",
        ),
        discount_factor=0.99,
        learn=dict(
            epoch_per_collect=4,
            batch_size=64,
            learning_rate=0.001,
            lr_scheduler=dict(type="linear", unit="env_step", decay=1000000),
        ),
        collect=dict(n_sample=256, gae_lambda=0.98),
        eval=dict(evaluator=dict(eval_freq=3200)),
    ),
)

create_config = mountain_car_ppo_create_config = EasyDict(
    env_manager=dict(type="base"), policy=dict(type="ppo")
)

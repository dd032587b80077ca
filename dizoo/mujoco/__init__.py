"""Robots in MuJoCo, by their Gymnasium ids. Needs the extra `mujoco`."""

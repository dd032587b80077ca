from dizoo.toy.lattice.envs.lattice_env import LatticeEnv

__all__ = ["LatticeEnv"]

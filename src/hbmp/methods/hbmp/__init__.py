"""Hashing with Binary Matrix Pursuit: affinity, target codes, hash function, composed."""

from hbmp.methods.hbmp.estimator import HBMP

__all__ = ["HBMP"]

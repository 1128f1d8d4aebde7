"""Kernels for CUDA GPUs: all modules but `pair_range` need torch and Triton to be imported."""

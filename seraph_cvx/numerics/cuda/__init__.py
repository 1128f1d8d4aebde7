"""Kernels for CUDA GPUs, by Triton; `sweeps` and `face` need torch and Triton to be imported."""

"""The machine: what it has of AMD GPUs, and what JAX's devices are."""

"""What every test shares."""

import jax

import jax_fa  # noqa: F401  (the installed package, before any test module changes anything)

# For the tests of sharding; the first is everybody's default.
jax.config.update("jax_num_cpu_devices", 4)

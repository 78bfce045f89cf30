"""What every test shares."""

import jax_fa  # noqa: F401  (the installed package, before any test module changes anything)

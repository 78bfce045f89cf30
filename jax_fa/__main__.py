"""python -m jax_fa: the console script jax-fa."""

from jax_fa._cli import main

if __name__ == "__main__":
    raise SystemExit(main())

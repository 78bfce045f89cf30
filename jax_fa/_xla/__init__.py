"""implementation="xla": blockwise attention in jnp, with O(S) memory, forward and backward."""

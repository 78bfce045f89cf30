"""The operations: dense, packed and paged attention, forward and backward, and their FFI calls."""

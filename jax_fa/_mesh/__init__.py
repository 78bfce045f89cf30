"""Over several devices: partitioning rules, their export, and varying axes under shard_map."""

"""Every attention operation by its name, which exported programs hold."""

from __future__ import annotations

from typing import Any

from jax_fa._mesh.export import Options
from jax_fa._mesh.sharding import partition_call
from jax_fa._ops import dense, paged, varlen
from jax_fa._ops.operation import make_backward, make_forward

OPERATIONS = {x.name: x for x in (dense.OPERATION, varlen.OPERATION, paged.OPERATION)}

_DIRECTIONS: dict[str, Any] = {"forward": make_forward, "backward": make_backward}


def partition_exported(options: Options, mesh: Any, arguments: Any, results: Any) -> Any:
    """How a call in an exported program divides; see export.register."""
    del results
    name, _, direction = options.name.rpartition("_")
    call = _DIRECTIONS[direction](OPERATIONS[name], *options.static)
    return partition_call(call, options.given, mesh, arguments)

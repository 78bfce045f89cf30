"""Names of divided operations that are the same in every process.

custom_partitioning finds its rule again by the address of a Python object, which it writes into the
program. JAX's persistent cache of compiled programs would then never find one of another process.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any


def name_by_content(module: Any, operation: Any, content: str) -> None:
    """Has a custom_partitioning's operation named by what it computes, not where its rule is.

    module: JAX's context of the lowering.
    content: all that decides what it is compiled to, beside its mesh and platform: the compiled
      program is not made again for a name that is known.
    """
    # custom_partitioning itself is made of these. Where a JAX lacks them, names stay addresses.
    try:
        from jax._src import custom_partitioning

        internals: Any = custom_partitioning
        rules, target = internals._sharding_callbacks, internals._CUSTOM_PARTITIONING_CALL_NAME
        if operation.attributes["call_target_name"].value != target:
            return
        attribute = operation.attributes["backend_config"]
        rule = rules[attribute.value.encode()]
        mesh = rule.mesh, [device.id for device in rule.mesh.devices.flat]
    except (ImportError, AttributeError, KeyError):
        return
    # What a Python function or object prints as has its address.
    text = re.sub(r"0x[0-9a-f]+", "", f"{module.platforms} {mesh} {content}")
    name = f"jax_fa {hashlib.sha256(text.encode()).hexdigest()}"
    # Programs that are compiled at the same time share the rule, which lives as long as they do.
    module.add_keepalive(rules.setdefault(name.encode(), rule))
    operation.attributes["backend_config"] = type(attribute).get(name)

"""A workgroup's modelled time in the Chrome trace format, which Perfetto opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CLK_PER_MICROSECOND = 1000  # the viewer's unit: a clock shows as a nanosecond


def chrome_trace(
    launch: Any, workgroup: int | None = None, constants: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """The waves of one workgroup, alone on its unit, as tracks of what they spend their time in.

    Modelled. A slice is a run of like instructions (matrix, vector, transcendental, scalar, LDS,
    memory, wait, barrier) with the time that the first of them waited to issue. One clock is shown
    as one nanosecond. Written with ``json.dump``, Perfetto opens it.

    Args:
      launch: an emulated launch with ``timing=True`` and ``workgroups=``.
      workgroup: which of these; None is the first.
      constants: of the timing model, by name, where they differ from its table.

    Raises:
      ValueError: the launch kept no trace of the workgroup.
    """
    trace = launch.trace
    if trace is None:
        raise ValueError("launch keeps no trace: pass timing=True and workgroups= to it")
    if workgroup is None:
        workgroup = trace.groups[0]
    if workgroup not in trace.groups:
        raise ValueError(f"workgroup must be one of {trace.groups}; got {workgroup}")
    place = trace.groups.index(workgroup)
    title = f"{launch.kernel}, workgroup {workgroup}"
    slices = trace.slices(place, dict(constants or {}))
    waves = sorted({wave for wave, *_ in slices})
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": f"{title} (modelled)"}}
    ]
    for wave in waves:
        track = f"wave {wave} (SIMD {wave % trace.simds})"
        events.append(
            {"ph": "M", "pid": 0, "tid": wave, "name": "thread_name", "args": {"name": track}}
        )
        events.append(
            {"ph": "M", "pid": 0, "tid": wave, "name": "thread_sort_index"}
            | {"args": {"sort_index": wave}}
        )
    for wave, kind, begin, end, instructions in slices:
        events.append(
            {
                "ph": "X",
                "pid": 0,
                "tid": wave,
                "name": kind,
                "cat": kind,
                "ts": begin / _CLK_PER_MICROSECOND,
                "dur": (end - begin) / _CLK_PER_MICROSECOND,
                "args": {"instructions": instructions, "clk": end - begin},
            }
        )
    return {"displayTimeUnit": "ns", "traceEvents": events}

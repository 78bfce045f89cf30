// Types that a process has once, however often Python imports the module.
#pragma once

#include <nanobind/nanobind.h>

// Whether T was bound before, by an import that Python has forgotten since (a notebook's reload).
// The module then has that type under its name.
template <typename T>
bool BoundBefore(nanobind::module_& module, const char* name) {
  const nanobind::handle known = nanobind::type<T>();
  if (known.is_valid()) module.attr(name) = known;
  return known.is_valid();
}

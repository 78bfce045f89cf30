# device_options: how clang compiles device code, for every target. As a script (cmake -P) it prints
# them, for `benchmarks/run.py ablations`.
#
# -emit-llvm stops the driver before its own link step, which wants a program named lld; -emit-obj
# then makes the compiler proper write an object all the same. The driver ignores -MF for a device,
# hence the dependency file by the compiler proper's own options. -fuse-cuid=none keeps the bytes free
# of the sources' paths. Version 5: ROCm before 6.2 does not load version 6. The SLP vectoriser
# undoes hand-made register layouts.
set(device_options -x hip --offload-device-only -nogpulib -nogpuinc -std=c++20 -O3
    -fno-slp-vectorize -mcode-object-version=5 -fuse-cuid=none -Wall -Wextra -Werror
    -emit-llvm -c -Xclang -emit-obj)

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${device_options}")
endif()

// The targets of this package: the one table of facts about a chip that launcher, runtime and
// Python (jax_fa._native.targets()) go by.
#ifndef JAX_FA_RUNTIME_TARGETS_H_
#define JAX_FA_RUNTIME_TARGETS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/arch/gfx1201/limits.h"
#include "kernels/arch/gfx950/limits.h"
#include "kernels/attention/tiles.h"
#include "kernels/mainloop/gfx1201/tiles.h"
#include "kernels/mainloop/gfx950/tiles.h"

namespace jax_fa {

// No fact has a default: a row that leaves one out does not compile (-Wextra -Werror names it).
struct Target {
  std::string_view name;        // the architecture, as LLVM and HIP spell it
  std::string_view first_rocm;  // the oldest ROCm that loads its code objects
  int compute_units;            // of the chip that the target stands for
  int dies;                     // each has its own L2; workgroup ids go round them
  int lds_bytes;                // the most that a workgroup may have
  // The most rows of a key head (tokens times heads of its group) for which a decode kernel is the
  // better one: its widest tile holds them, or, where no tile is so wide, it reads K and V less
  // often than a tile for each head would.
  int packed_rows;
  // Tiles of each family of kernels (launch/catalogue.h), narrowest head first; empty: none.
  std::span<const AttentionTile> flash_tiles;
  std::span<const AttentionTile> decode_tiles;
  std::span<const AttentionTile> wide_decode_tiles;

  constexpr int max_head_dim() const { return flash_tiles.back().head_dim; }

  // The fewest keys that a tile of a kernel with splits holds.
  constexpr int min_split_keys() const {
    int keys = decode_tiles.front().block_kv;
    for (const auto tiles : {decode_tiles, wide_decode_tiles}) {
      for (const AttentionTile& tile : tiles) keys = std::min(keys, tile.block_kv);
    }
    return keys;
  }
};

inline constexpr Target kTargets[] = {
    {.name = "gfx950",  // MI355X
     .first_rocm = "7.0",
     .compute_units = 256,
     .dies = gfx950::kDies,
     .lds_bytes = gfx950::kMaxLdsBytes,
     .packed_rows = 64,
     .flash_tiles = gfx950::kFlashTiles,
     .decode_tiles = gfx950::kDecodeTiles,
     .wide_decode_tiles = {}},
    {.name = "gfx1201",  // RX 9070 XT
     .first_rocm = "6.2",
     .compute_units = 64,
     .dies = gfx1201::kDies,
     .lds_bytes = gfx1201::kMaxLdsBytes,
     .packed_rows = 64,
     .flash_tiles = gfx1201::kFlashTiles,
     .decode_tiles = gfx1201::kDecodeTiles,
     .wide_decode_tiles = gfx1201::kWideDecodeTiles},
};

// An architecture that a target's code object serves. Where it is not the target's own, the kernels
// compiled for it have the same code and data, byte for byte, and only the ELF header differs.
struct Architecture {
  std::string_view name;    // as HIP spells it, without feature flags
  std::string_view target;  // of kTargets
  uint32_t machine;         // EF_AMDGPU_MACH, the low byte of the header's e_flags
};

inline constexpr Architecture kArchitectures[] = {
    {.name = "gfx950", .target = "gfx950", .machine = 0x4f},
    {.name = "gfx1201", .target = "gfx1201", .machine = 0x4e},
    {.name = "gfx1200", .target = "gfx1201", .machine = 0x48},  // RX 9060 XT
};

// A head size is a multiple of this on every target (kernels/params.h).
inline constexpr int kHeadDimMultiple = 8;

// The widest head that some target has a kernel for.
inline constexpr int kMaxHeadDim =
    std::ranges::max_element(kTargets, {}, &Target::max_head_dim)->max_head_dim();

// The target of this name; null when there is none.
constexpr const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

// The architecture of this name; null when no target serves it.
constexpr const Architecture* FindArchitecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
  }
  return nullptr;
}

// "gfx950 and gfx1201" with "and"; with "or" and "any", "gfx950, gfx1201 or any".
std::string TargetNames(std::string_view conjunction, std::string_view also = {});

}  // namespace jax_fa

#endif  // JAX_FA_RUNTIME_TARGETS_H_

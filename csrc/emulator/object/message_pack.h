// A reader of MessagePack, as far as code object metadata goes: maps, arrays, strings, integers,
// booleans. Damaged input throws EmulatorError.
#ifndef JAX_FA_EMULATOR_OBJECT_MESSAGE_PACK_H_
#define JAX_FA_EMULATOR_OBJECT_MESSAGE_PACK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jax_fa::emulator {

// The text with all but printable ASCII replaced: names of a damaged file must still be fit for
// messages and for Python.
std::string Printable(std::string text);

struct PackedValue {
  enum Kind : uint8_t { kNil, kInteger, kString, kArray, kMap } kind = kNil;
  int64_t integer = 0;             // booleans: 0 and 1; unsigned values past 2^63 wrap
  std::string text;                // printable
  std::vector<PackedValue> items;  // kArray
  std::vector<std::pair<PackedValue, PackedValue>> entries;  // kMap

  bool operator==(const PackedValue&) const = default;

  // The entry of a map with this string key; null when absent or not a map.
  const PackedValue* Find(std::string_view key) const;
  int64_t IntegerOr(std::string_view key, int64_t otherwise) const;
  std::string TextOr(std::string_view key, std::string otherwise) const;
};

PackedValue ReadMessagePack(std::span<const std::byte> bytes);

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_OBJECT_MESSAGE_PACK_H_

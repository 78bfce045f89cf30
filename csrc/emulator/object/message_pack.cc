#include "emulator/object/message_pack.h"

#include "emulator/emulator.h"

namespace jax_fa::emulator {
namespace {

[[noreturn]] void Damaged(const char* what) {
  throw EmulatorError(std::string("code object metadata is damaged: ") + what);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  PackedValue Value(int depth) {
    if (depth > 16) Damaged("nested too deeply");
    const uint32_t tag = static_cast<uint32_t>(Unsigned(1));
    PackedValue value;
    if (tag < 0x80) return Integer(tag);
    if (tag >= 0xe0) return Integer(static_cast<int8_t>(tag));
    if (tag < 0x90) return Map(tag & 15, depth);
    if (tag < 0xa0) return Array(tag & 15, depth);
    if (tag < 0xc0) return Text(tag & 31);
    switch (tag) {
      case 0xc0:
        return value;
      case 0xc2:
      case 0xc3:
        return Integer(tag == 0xc3);
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return Text(Unsigned(1 << (tag - 0xc4)));
      case 0xca:
      case 0xcb:
        Unsigned(tag == 0xca ? 4 : 8);
        return value;
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf:
        return Integer(static_cast<int64_t>(Unsigned(1 << (tag - 0xcc))));
      case 0xd0:
        return Integer(static_cast<int8_t>(Unsigned(1)));
      case 0xd1:
        return Integer(static_cast<int16_t>(Unsigned(2)));
      case 0xd2:
        return Integer(static_cast<int32_t>(Unsigned(4)));
      case 0xd3:
        return Integer(static_cast<int64_t>(Unsigned(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return Text(Unsigned(1 << (tag - 0xd9)));
      case 0xdc:
      case 0xdd:
        return Array(Unsigned(tag == 0xdc ? 2 : 4), depth);
      case 0xde:
      case 0xdf:
        return Map(Unsigned(tag == 0xde ? 2 : 4), depth);
      default:
        Damaged("unknown MessagePack tag");
    }
  }

 private:
  uint64_t Unsigned(size_t size) {
    if (bytes_.size() - at_ < size) Damaged("it ends within a value");
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[at_ + i]);
    at_ += size;
    return value;
  }
  static PackedValue Integer(int64_t integer) {
    PackedValue value;
    value.kind = PackedValue::kInteger;
    value.integer = integer;
    return value;
  }
  PackedValue Text(uint64_t size) {
    if (bytes_.size() - at_ < size) Damaged("it ends within a string");
    PackedValue value;
    value.kind = PackedValue::kString;
    value.text = Printable({reinterpret_cast<const char*>(bytes_.data()) + at_, size});
    at_ += size;
    return value;
  }
  // A count is plausible when each item can have at least a byte.
  void RequireItems(uint64_t count) const {
    if (bytes_.size() - at_ < count) Damaged("it ends within a list");
  }
  PackedValue Array(uint64_t count, int depth) {
    RequireItems(count);
    PackedValue value;
    value.kind = PackedValue::kArray;
    for (uint64_t i = 0; i < count; ++i) value.items.push_back(Value(depth + 1));
    return value;
  }
  PackedValue Map(uint64_t count, int depth) {
    RequireItems(count);
    PackedValue value;
    value.kind = PackedValue::kMap;
    for (uint64_t i = 0; i < count; ++i) {
      PackedValue key = Value(depth + 1);
      value.entries.emplace_back(std::move(key), Value(depth + 1));
    }
    return value;
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string Printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

const PackedValue* PackedValue::Find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.kind == kString && name.text == key) return &value;
  }
  return nullptr;
}

int64_t PackedValue::IntegerOr(std::string_view key, int64_t otherwise) const {
  const PackedValue* value = Find(key);
  return value && value->kind == kInteger ? value->integer : otherwise;
}

std::string PackedValue::TextOr(std::string_view key, std::string otherwise) const {
  const PackedValue* value = Find(key);
  return value && value->kind == kString ? value->text : std::move(otherwise);
}

PackedValue ReadMessagePack(std::span<const std::byte> bytes) { return Reader(bytes).Value(0); }

}  // namespace jax_fa::emulator

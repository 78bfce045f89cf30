// What the real library reads of a code object before it runs any of it: the ELF header's flags and
// the metadata of the kernels, a MessagePack document in an ELF note.
#ifndef HIP_STAND_IN_CODE_OBJECT_H_
#define HIP_STAND_IN_CODE_OBJECT_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace stand_in {

template <class T>
T Read(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

struct Value {
  enum Kind { kNone, kNumber, kText, kList, kMap } kind = kNone;
  uint64_t number = 0;
  std::string text;
  std::vector<Value> list;
  std::map<std::string, Value> map;

  const Value& operator[](const std::string& key) const { return map.at(key); }
  uint64_t Number(const std::string& key, uint64_t otherwise) const {
    const auto found = map.find(key);
    return found == map.end() ? otherwise : found->second.number;
  }
};

// The part of MessagePack that code objects use.
class Reader {
 public:
  Reader(const unsigned char* at, const unsigned char* end) : at_(at), end_(end) {}

  Value Next() {
    const unsigned char tag = *Take(1);
    if (tag < 0x80) return Number(tag);
    if (tag < 0x90) return Map(tag & 15);
    if (tag < 0xa0) return List(tag & 15);
    if (tag < 0xc0) return Text(tag & 31);
    switch (tag) {
      case 0xc0:
        return {};
      case 0xc2:
      case 0xc3:
        return Number(tag & 1);
      case 0xcc:
        return Number(BigEndian(1));
      case 0xcd:
        return Number(BigEndian(2));
      case 0xce:
        return Number(BigEndian(4));
      case 0xcf:
        return Number(BigEndian(8));
      case 0xd9:
        return Text(BigEndian(1));
      case 0xda:
        return Text(BigEndian(2));
      case 0xdc:
        return List(BigEndian(2));
      case 0xdd:
        return List(BigEndian(4));
      case 0xde:
        return Map(BigEndian(2));
      default:
        throw std::runtime_error("metadata of a kind that is not read");
    }
  }

 private:
  const unsigned char* Take(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(end_ - at_)) throw std::runtime_error("metadata ends early");
    const unsigned char* const taken = at_;
    at_ += bytes;
    return taken;
  }
  uint64_t BigEndian(int bytes) {
    const unsigned char* const digits = Take(bytes);
    uint64_t number = 0;
    for (int i = 0; i < bytes; ++i) number = number << 8 | digits[i];
    return number;
  }
  static Value Number(uint64_t number) {
    Value value;
    value.kind = Value::kNumber;
    value.number = number;
    return value;
  }
  Value Text(uint64_t bytes) {
    Value value;
    value.kind = Value::kText;
    value.text.assign(reinterpret_cast<const char*>(Take(bytes)), bytes);
    return value;
  }
  Value List(uint64_t count) {
    Value value;
    value.kind = Value::kList;
    for (uint64_t i = 0; i < count; ++i) value.list.push_back(Next());
    return value;
  }
  Value Map(uint64_t count) {
    Value value;
    value.kind = Value::kMap;
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = Next().text;
      value.map[key] = Next();
    }
    return value;
  }

  const unsigned char* at_;
  const unsigned char* end_;
};

struct Argument {
  uint64_t offset, bytes;
};

struct Kernel {
  std::vector<Argument> arguments;  // those that the caller gives
  uint64_t explicit_bytes = 0;      // up to the end of the last of them
  uint64_t kernarg_bytes = 0, lds_bytes = 0, max_workgroup = 0;
  bool uniform = false;
  std::array<uint64_t, 3> required_block = {};  // zeros: any
};

// The image's bytes, from its section header table, which the linker puts last.
inline size_t ElfBytes(const unsigned char* elf) {
  return Read<uint64_t>(elf + 40) + Read<uint16_t>(elf + 58) * Read<uint16_t>(elf + 60);
}

inline Kernel ReadKernel(const Value& described) {
  Kernel kernel;
  kernel.kernarg_bytes = described[".kernarg_segment_size"].number;
  kernel.lds_bytes = described[".group_segment_fixed_size"].number;
  kernel.max_workgroup = described[".max_flat_workgroup_size"].number;
  kernel.uniform = described.Number(".uniform_work_group_size", 0) != 0;
  if (const auto found = described.map.find(".args"); found != described.map.end()) {
    for (const Value& argument : found->second.list) {
      if (argument[".value_kind"].text.rfind("hidden_", 0) == 0) continue;
      const Argument one = {argument[".offset"].number, argument[".size"].number};
      kernel.arguments.push_back(one);
      if (one.offset + one.bytes > kernel.explicit_bytes) {
        kernel.explicit_bytes = one.offset + one.bytes;
      }
    }
  }
  if (const auto found = described.map.find(".reqd_workgroup_size"); found != described.map.end()) {
    for (int axis = 0; axis < 3; ++axis) {
      kernel.required_block[axis] = found->second.list.at(axis).number;
    }
  }
  return kernel;
}

// Throws where there is no readable metadata.
inline std::map<std::string, Kernel> ReadKernels(const std::vector<unsigned char>& image) {
  constexpr uint32_t kNoteSegment = 4, kMetadataNote = 32;
  const unsigned char* const elf = image.data();
  const uint64_t headers = Read<uint64_t>(elf + 32);
  for (int i = 0; i < Read<uint16_t>(elf + 56); ++i) {
    const unsigned char* const header = elf + headers + i * Read<uint16_t>(elf + 54);
    if (Read<uint32_t>(header) != kNoteSegment) continue;
    const unsigned char* note = elf + Read<uint64_t>(header + 8);
    const unsigned char* const end = note + Read<uint64_t>(header + 32);
    while (note + 12 < end) {
      const auto padded = [](uint64_t bytes) { return (bytes + 3) / 4 * 4; };
      const uint32_t name = Read<uint32_t>(note), bytes = Read<uint32_t>(note + 4);
      const unsigned char* const text = note + 12 + padded(name);
      if (Read<uint32_t>(note + 8) == kMetadataNote) {
        const Value document = Reader(text, text + bytes).Next();
        std::map<std::string, Kernel> kernels;
        for (const Value& kernel : document["amdhsa.kernels"].list) {
          kernels[kernel[".name"].text] = ReadKernel(kernel);
        }
        return kernels;
      }
      note = text + padded(bytes);
    }
  }
  throw std::runtime_error("no metadata");
}

// Whether the flags in the header say of a feature what the device has, or "any": 1 any, 2 off,
// 3 on, 0 for chips without it.
inline bool FeatureFits(uint32_t flags, int shift, const std::string& device, const char* name) {
  const uint32_t wanted = flags >> shift & 3;
  const bool on = device.find(std::string(name) + "+") != std::string::npos;
  const bool off = device.find(std::string(name) + "-") != std::string::npos;
  if (!on && !off) return wanted <= 1;  // the device does not have the feature
  return wanted == 1 || wanted == (on ? 3u : 2u);
}

}  // namespace stand_in

#endif  // HIP_STAND_IN_CODE_OBJECT_H_

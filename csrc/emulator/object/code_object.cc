// Loads an AMD GPU code object: ELF, metadata note, kernel descriptors.
//
// Code object versions 4 to 6 differ in the ELF's ABI version and in the hidden arguments that the
// metadata lists; all else is the same.
#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "emulator/emulator.h"
#include "emulator/object/message_pack.h"
#include "emulator/object/program.h"

namespace jax_fa::emulator {
namespace {

constexpr uint16_t kMachineAmdGpu = 224;
constexpr uint8_t kOsAbiAmdHsa = 64;
constexpr uint8_t kAbiVersion4 = 2, kAbiVersion6 = 4;
constexpr uint32_t kProgramLoad = 1, kProgramNote = 4;
constexpr uint32_t kSegmentWritable = 2;
constexpr uint32_t kSectionSymbols = 2, kSectionRela = 4, kSectionDynamicSymbols = 11;
constexpr uint32_t kNoteMetadata = 32;
constexpr uint8_t kSymbolFunction = 2;
constexpr uint32_t kRelocationAbsolute64 = 3, kRelocationRelative64 = 13;
constexpr uint64_t kMaxImageBytes = uint64_t{1} << 28;
constexpr uint32_t kDescriptorBytes = 64;

[[noreturn]] void Refuse(const std::string& what) {
  throw EmulatorError("not a usable code object: " + what);
}

// Little-endian fields at checked offsets.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T At(uint64_t offset) const {
    T value;
    std::memcpy(&value, Slice(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> Slice(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) {
      Refuse("it is truncated (wants " + std::to_string(size) + " bytes at " +
             std::to_string(offset) + " of " + std::to_string(bytes_.size()) + ")");
    }
    return bytes_.subspan(offset, size);
  }
  std::string Text(uint64_t offset, uint64_t end) const {
    std::string text;
    for (uint64_t at = offset; at < end; ++at) {
      const char c = static_cast<char>(At<uint8_t>(at));
      if (c == 0) return Printable(text);
      text += c;
    }
    Refuse("a name does not end");
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Symbol {
  std::string name;
  uint64_t value = 0, size = 0;
  uint8_t type = 0;
  uint16_t section = 0;
};

class Loader {
 public:
  explicit Loader(std::span<const std::byte> elf) : file_(elf) {}

  std::shared_ptr<Program> Load() {
    ReadHeader();
    LoadSegments();
    ReadSections();
    ReadKernels();
    return program_;
  }

 private:
  void ReadHeader() {
    const auto magic = file_.Slice(0, 64);
    if (std::memcmp(magic.data(),
                    "\x7f"
                    "ELF",
                    4) != 0) {
      if (std::memcmp(magic.data(), "__CLANG_OFFLOAD_BUNDLE__", 24) == 0) {
        Refuse("it is an offload bundle; compile with --no-gpu-bundle-output, or unbundle it");
      }
      Refuse("it does not begin with the ELF signature");
    }
    if (file_.At<uint8_t>(4) != 2 || file_.At<uint8_t>(5) != 1) {
      Refuse("it is not a 64-bit little-endian ELF");
    }
    if (file_.At<uint16_t>(18) != kMachineAmdGpu) {
      Refuse("its machine is " + std::to_string(file_.At<uint16_t>(18)) + ", not AMDGPU (224)");
    }
    const uint8_t os_abi = file_.At<uint8_t>(7), abi_version = file_.At<uint8_t>(8);
    if (os_abi != kOsAbiAmdHsa || abi_version < kAbiVersion4 || abi_version > kAbiVersion6) {
      Refuse("it must be of the amdhsa ABI, code object version 4 to 6; got OS ABI " +
             std::to_string(os_abi) + ", ABI version " + std::to_string(abi_version));
    }
    if (file_.At<uint16_t>(16) != 3) Refuse("it is not linked (not a shared object)");
    const uint32_t machine = file_.At<uint32_t>(48) & 0xff;
    program_->chip = TargetOfElf(machine);
    if (!program_->chip) {
      Refuse("its processor (EF_AMDGPU_MACH " + std::to_string(machine) + ") is neither " +
             TargetNames(" nor "));
    }
    program_->target = *program_->chip->name;
  }

  void LoadSegments() {
    const auto offset = file_.At<uint64_t>(32);
    const auto entry_bytes = file_.At<uint16_t>(54), count = file_.At<uint16_t>(56);
    if (count != 0 && entry_bytes < 56) Refuse("its program header entries are too small");
    uint64_t image_bytes = 0;
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1) program_->image.resize(image_bytes);
      for (uint32_t i = 0; i < count; ++i) {
        const uint64_t at = offset + uint64_t{i} * entry_bytes;
        const auto type = file_.At<uint32_t>(at), flags = file_.At<uint32_t>(at + 4);
        const auto from = file_.At<uint64_t>(at + 8), address = file_.At<uint64_t>(at + 16);
        const auto file_bytes = file_.At<uint64_t>(at + 32);
        const auto memory_bytes = file_.At<uint64_t>(at + 40);
        if (type == kProgramNote && pass == 0) ReadNotes(file_.Slice(from, file_bytes));
        if (type != kProgramLoad) continue;
        if (address > kMaxImageBytes || memory_bytes > kMaxImageBytes ||
            file_bytes > memory_bytes) {
          Refuse("a segment has an impossible size or address");
        }
        const auto contents = file_.Slice(from, file_bytes);
        if (pass == 0) {
          image_bytes = std::max(image_bytes, address + memory_bytes);
          if (memory_bytes != 0) {
            program_->segments.push_back({address, memory_bytes, (flags & kSegmentWritable) != 0});
          }
        } else if (!contents.empty()) {
          std::memcpy(program_->image.data() + address, contents.data(), contents.size());
        }
      }
    }
    if (program_->image.empty()) Refuse("it has no loadable segment");
    if (metadata_.empty()) Refuse("it has no metadata note");
  }

  void ReadNotes(std::span<const std::byte> notes) {
    const Bytes bytes(notes);
    uint64_t at = 0;
    while (at + 12 <= notes.size()) {
      const auto name_bytes = bytes.At<uint32_t>(at), data_bytes = bytes.At<uint32_t>(at + 4);
      const auto type = bytes.At<uint32_t>(at + 8);
      const uint64_t name = at + 12, data = name + ((uint64_t{name_bytes} + 3) & ~uint64_t{3});
      const auto contents = bytes.Slice(data, data_bytes);
      if (type == kNoteMetadata && name_bytes >= 6 &&
          bytes.Text(name, name + name_bytes) == "AMDGPU") {
        metadata_.push_back(ReadMessagePack(contents));
      }
      at = data + ((uint64_t{data_bytes} + 3) & ~uint64_t{3});
    }
  }

  struct Section {
    uint32_t type, link;
    uint64_t offset, bytes, entry_bytes;
  };
  void ReadSections() {
    const auto offset = file_.At<uint64_t>(40);
    const auto entry_bytes = file_.At<uint16_t>(58), count = file_.At<uint16_t>(60);
    std::vector<Section> sections;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t at = offset + uint64_t{i} * entry_bytes;
      sections.push_back({file_.At<uint32_t>(at + 4), file_.At<uint32_t>(at + 40),
                          file_.At<uint64_t>(at + 24), file_.At<uint64_t>(at + 32),
                          file_.At<uint64_t>(at + 56)});
    }
    for (const Section& section : sections) {
      if (section.type == kSectionDynamicSymbols || section.type == kSectionSymbols) {
        if (section.link >= sections.size()) Refuse("a symbol table has no string table");
        ReadSymbols(section, sections[section.link],
                    section.type == kSectionDynamicSymbols ? &dynamic_symbols_ : &symbols_);
      }
    }
    for (const Section& section : sections) {
      if (section.type == kSectionRela) Relocate(section);
    }
  }

  void ReadSymbols(const Section& table, const Section& strings, std::vector<Symbol>* symbols) {
    if (strings.bytes > kMaxImageBytes) Refuse("a string table has an impossible size");
    for (uint64_t at = 0; at + 24 <= table.bytes; at += 24) {
      const uint64_t entry = table.offset + at;
      Symbol symbol;
      symbol.name =
          file_.Text(strings.offset + file_.At<uint32_t>(entry), strings.offset + strings.bytes);
      symbol.type = file_.At<uint8_t>(entry + 4) & 15;
      symbol.section = file_.At<uint16_t>(entry + 6);
      symbol.value = file_.At<uint64_t>(entry + 8);
      symbol.size = file_.At<uint64_t>(entry + 16);
      symbols->push_back(symbol);
    }
  }

  // Pointers in constant data: to the image where it lies in host memory.
  void Relocate(const Section& section) {
    const uint64_t base = reinterpret_cast<uint64_t>(program_->image.data());
    for (uint64_t at = 0; at + 24 <= section.bytes; at += 24) {
      const uint64_t entry = section.offset + at;
      const auto place = file_.At<uint64_t>(entry);
      const auto info = file_.At<uint64_t>(entry + 8);
      uint64_t value = base + file_.At<uint64_t>(entry + 16);
      const uint32_t type = static_cast<uint32_t>(info), symbol = static_cast<uint32_t>(info >> 32);
      if (type == kRelocationAbsolute64) {
        if (symbol >= dynamic_symbols_.size()) Refuse("a relocation names no symbol");
        value += dynamic_symbols_[symbol].value;
      } else if (type != kRelocationRelative64) {
        Refuse("relocation type " + std::to_string(type) + " is not supported");
      }
      if (place > program_->image.size() || program_->image.size() - place < 8) {
        Refuse("a relocation lies outside the image");
      }
      std::memcpy(program_->image.data() + place, &value, 8);
    }
  }

  const Symbol* FindSymbol(const std::string& name) const {
    for (const auto* table : {&dynamic_symbols_, &symbols_}) {
      for (const Symbol& symbol : *table) {
        if (symbol.section != 0 && symbol.name == name) return &symbol;
      }
    }
    return nullptr;
  }

  // [begin, end) within the image, whole instructions.
  std::pair<uint32_t, uint32_t> TextRange(const std::string& name, uint64_t begin,
                                          uint64_t size) const {
    if (begin % 4 != 0 || begin > program_->image.size() ||
        program_->image.size() - begin < std::max<uint64_t>(size, 4)) {
      Refuse("the text of '" + name + "' lies outside the image");
    }
    return {static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + size / 4 * 4)};
  }

  void ReadKernels() {
    std::map<std::string, const PackedValue*> entries;  // those of all notes
    bool listed = false;
    for (const PackedValue& note : metadata_) {
      const PackedValue* kernels = note.Find("amdhsa.kernels");
      if (!kernels || kernels->kind != PackedValue::kArray) continue;
      listed = true;
      for (const PackedValue& entry : kernels->items) {
        const std::string name = entry.TextOr(".name", "");
        const auto [known, added] = entries.emplace(name, &entry);
        if (added) {
          ReadKernel(entry);
        } else if (*known->second != entry) {
          Refuse("its metadata describes kernel '" + name + "' twice, and differently");
        }
      }
    }
    if (!listed) Refuse("its metadata lists no kernels");
    for (const auto* table : {&dynamic_symbols_, &symbols_}) {
      for (const Symbol& symbol : *table) {
        if (symbol.type != kSymbolFunction || symbol.section == 0 || symbol.size == 0) continue;
        if (program_->kernels.contains(symbol.name)) continue;
        const auto range = TextRange(symbol.name, symbol.value, symbol.size);
        auto& functions = program_->functions;
        if (std::find(functions.begin(), functions.end(), range) == functions.end()) {
          functions.push_back(range);
        }
      }
    }
  }

  void ReadKernel(const PackedValue& entry) {
    Kernel kernel;
    KernelInfo& info = kernel.info;
    info.name = entry.TextOr(".name", "");
    const Symbol* descriptor = FindSymbol(entry.TextOr(".symbol", info.name + ".kd"));
    if (info.name.empty() || !descriptor) Refuse("kernel '" + info.name + "' has no descriptor");
    const auto count = [&](std::string_view key, int64_t otherwise) {
      return static_cast<uint32_t>(entry.IntegerOr(key, otherwise));
    };
    info.vgprs = count(".vgpr_count", 0);
    info.agprs = count(".agpr_count", 0);
    info.sgprs = count(".sgpr_count", 0);
    info.vgpr_spills = count(".vgpr_spill_count", 0);
    info.sgpr_spills = count(".sgpr_spill_count", 0);
    info.max_workgroup_size = count(".max_flat_workgroup_size", 1024);
    info.wave_size = count(".wavefront_size", program_->chip->wave_size);
    if (info.wave_size != program_->chip->wave_size) {
      Refuse("kernel " + info.name + " is compiled for waves of " + std::to_string(info.wave_size) +
             " lanes; the emulator runs " + *program_->chip->name + " with " +
             std::to_string(*program_->chip->wave_size));
    }
    if (const PackedValue* arguments = entry.Find(".args")) {
      for (const PackedValue& argument : arguments->items) {
        kernel.arguments.push_back({argument.TextOr(".name", ""),
                                    argument.TextOr(".value_kind", ""),
                                    static_cast<uint32_t>(argument.IntegerOr(".offset", 0)),
                                    static_cast<uint32_t>(argument.IntegerOr(".size", 0))});
      }
    }
    ReadDescriptor(descriptor->value, &kernel);

    info.lds_bytes = kernel.descriptor.group_segment_bytes;
    info.scratch_bytes = kernel.descriptor.private_segment_bytes;
    info.kernarg_bytes =
        std::max(kernel.descriptor.kernarg_bytes, count(".kernarg_segment_size", 0));
    // Those of hand-written kernels may end behind the size that is stated.
    for (const KernelArgument& argument : kernel.arguments) {
      const uint64_t end = uint64_t{argument.offset} + argument.bytes;
      info.kernarg_bytes = static_cast<uint32_t>(
          std::min<uint64_t>(std::max<uint64_t>(info.kernarg_bytes, end), ~0u));
    }
    if (info.kernarg_bytes > (1u << 20)) Refuse("the kernel arguments have an impossible size");

    // The text runs to the end of the function's symbol, or of its segment.
    const Symbol* function = FindSymbol(info.name);
    uint64_t bytes = 0;
    if (function && function->value == kernel.descriptor.entry) bytes = function->size;
    if (bytes == 0) {
      for (const Segment& segment : program_->segments) {
        if (kernel.descriptor.entry >= segment.begin &&
            kernel.descriptor.entry - segment.begin < segment.bytes) {
          bytes = segment.begin + segment.bytes - kernel.descriptor.entry;
        }
      }
    }
    std::tie(kernel.text_begin, kernel.text_end) =
        TextRange(info.name, kernel.descriptor.entry, bytes);
    program_->kernel_infos[info.name] = info;
    program_->kernels[info.name] = std::move(kernel);
  }

  void ReadDescriptor(uint64_t at, Kernel* kernel) {
    if (at > program_->image.size() || program_->image.size() - at < kDescriptorBytes) {
      Refuse("the descriptor of '" + kernel->info.name + "' lies outside the image");
    }
    const Bytes bytes(std::as_bytes(std::span(program_->image)).subspan(at, kDescriptorBytes));
    KernelDescriptor& descriptor = kernel->descriptor;
    descriptor.group_segment_bytes = bytes.At<uint32_t>(0);
    descriptor.private_segment_bytes = bytes.At<uint32_t>(4);
    descriptor.kernarg_bytes = bytes.At<uint32_t>(8);
    const uint64_t entry = at + bytes.At<uint64_t>(16);
    if (entry > program_->image.size()) Refuse("a kernel's entry lies outside the image");
    descriptor.entry = static_cast<uint32_t>(entry);
    descriptor.resource3 = bytes.At<uint32_t>(44);
    descriptor.resource1 = bytes.At<uint32_t>(48);
    descriptor.resource2 = bytes.At<uint32_t>(52);
    descriptor.properties = bytes.At<uint16_t>(56);
    const auto preload = bytes.At<uint16_t>(58);
    descriptor.preload_dwords = preload & 127;
    descriptor.preload_offset_dwords = preload >> 7;
    if (descriptor.group_segment_bytes > program_->chip->max_lds_bytes) {
      Refuse("kernel '" + kernel->info.name + "' wants more LDS than a workgroup can have");
    }
    if (descriptor.private_segment_bytes > (1u << 20)) {
      Refuse("kernel '" + kernel->info.name + "' wants an impossible amount of scratch");
    }
  }

  Bytes file_;
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::vector<PackedValue> metadata_;  // one a note
  std::vector<Symbol> dynamic_symbols_, symbols_;
};

}  // namespace

CodeObject CodeObject::Parse(std::span<const std::byte> elf) {
  CodeObject code;
  code.program_ = Loader(elf).Load();
  return code;
}

const std::string& CodeObject::target() const { return program_->target; }
const std::map<std::string, KernelInfo>& CodeObject::kernels() const {
  return program_->kernel_infos;
}

}  // namespace jax_fa::emulator

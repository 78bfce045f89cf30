// The checks of LDS: what was never written, what is still under way, and races.
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "emulator/check/check.h"
#include "emulator/check/checker.h"

namespace jax_fa::emulator {
namespace {

bool IsAtomic(const Instruction& instruction) {
  return (instruction.opcode->flags & kIsAtomic) != 0;
}

std::string WaveName(uint32_t index) { return "wave " + std::to_string(index); }

// Calls fn(dword, byte mask) for each dword of [address, address + bytes).
template <class Fn>
void ForEachDword(uint32_t address, uint32_t bytes, size_t limit, Fn fn) {
  const uint64_t end = uint64_t{address} + bytes;
  for (uint64_t dword = address / 4; dword * 4 < end && dword < limit; ++dword) {
    const uint64_t first = std::max<uint64_t>(dword * 4, address) - dword * 4;
    const uint64_t last = std::min<uint64_t>(dword * 4 + 4, end) - dword * 4;
    fn(static_cast<uint32_t>(dword),
       static_cast<uint8_t>(((1u << last) - 1) & ~((1u << first) - 1)));
  }
}

}  // namespace

void CheckLdsReadSlow(Wave& wave, const Instruction& instruction, uint64_t lanes,
                      const uint32_t* addresses, uint32_t bytes) {
  wave.checker->LdsRead(wave, instruction, lanes, addresses, bytes);
}
void CheckLdsWriteSlow(Wave& wave, const Instruction& instruction, uint64_t lanes,
                       const uint32_t* addresses, uint32_t bytes) {
  wave.checker->LdsWrite(wave, instruction, lanes, addresses, bytes);
}

uint32_t Checker::LdsContents(uint32_t dword) const {
  const size_t at = size_t{4} * dword;
  uint32_t value = 0;
  std::memcpy(&value, &lds_bytes_[at], std::min<size_t>(4, lds_bytes_.size() - at));
  return value;
}

Checker::Sequences Checker::SeenBy(const Wave& wave) const {
  Sequences seen = visible_;
  // Its own writes in order; that a load to LDS has arrived is checked by itself.
  seen[Writer(wave, false)] = seen[Writer(wave, true)] = ~uint32_t{0};
  return seen;
}

void Checker::ReadDword(Wave& wave, const Instruction& instruction, uint32_t index, uint8_t bytes,
                        const Sequences& seen, int lane) {
  LdsDword& dword = lds_[index];
  const auto at = [&] { return "reads LDS byte " + std::to_string(index * 4); };
  const auto writer = [&] { return WaveName(dword.writer % kMaxWaves); };
  if (dword.dma_under_way != 0) {
    Report(wave, instruction,
           at() + " while a load to LDS of " + writer() + " into it is still under way", lane);
  } else if ((bytes & ~dword.written) != 0) {
    const uint32_t missing = bytes & ~static_cast<uint32_t>(dword.written);
    const uint32_t byte = index * 4 + static_cast<uint32_t>(std::countr_zero(missing));
    Report(wave, instruction,
           "reads LDS byte " + std::to_string(byte) + ", which was never written", lane);
    dword.written |= bytes & 15;
  } else if (dword.write_sequence > seen[dword.writer] && (bytes & dword.last_bytes) != 0 &&
             !(dword.atomic != 0 && IsAtomic(instruction))) {
    Report(wave, instruction,
           at() + ", which " + writer() + " wrote with no barrier (and wait before it) in between",
           lane);
  }
  // An atomic operation meets other accesses as the write that it is.
  if (IsAtomic(instruction)) return;
  const uint32_t phase = State(wave).signals;
  if (dword.read_phase != phase) {
    dword.read_phase = phase;
    dword.readers = 0;
    dword.read_bytes = 0;
  }
  dword.readers |= 1u << wave.index_in_group;
  dword.read_bytes |= bytes;
}

void Checker::FinishLdsReads(uint64_t sequence, std::vector<LdsReadUnderWay>* reads) {
  for (size_t i = 0; i < reads->size();) {
    if ((*reads)[i].sequence != sequence) {
      ++i;
      continue;
    }
    (*reads)[i] = reads->back();
    reads->pop_back();
  }
}

void Checker::NoteReadsUnderWay(const WaveState& state, std::vector<uint64_t>* dwords) const {
  dwords->clear();
  if (state.lds_reads.empty()) return;
  dwords->resize(lds_.size() / 64 + 1);
  for (const LdsReadUnderWay& read : state.lds_reads) {
    for (uint64_t lanes = read.lanes; lanes != 0; lanes &= lanes - 1) {
      ForEachDword(
          read.addresses[static_cast<size_t>(std::countr_zero(lanes))], read.bytes, lds_.size(),
          [&](uint32_t dword, uint8_t) { (*dwords)[dword / 64] |= uint64_t{1} << (dword % 64); });
    }
  }
}

int Checker::UnfinishedReader(const Wave& wave, uint32_t dword, uint32_t others) const {
  const uint32_t passed = waves_[wave.index_in_group].passed;
  for (; others != 0; others &= others - 1) {
    const int reader = std::countr_zero(others);
    if (passed <= lds_[dword].read_phase ||
        !ReadProven(waves_[static_cast<size_t>(reader)], passed, dword)) {
      return reader;
    }
  }
  return -1;
}

bool Checker::ComesAnyway(const Wave& wave, uint32_t dword, uint32_t loaded) const {
  bool under_way = false;
  for (const Wave& other : wave.group->waves) {
    for (const auto& result : other.in_flight) {
      if (result->destination != InFlight::kLds) continue;
      const uint32_t first = result->lds_address / 4;
      if (dword < first || dword - first >= result->dwords * uint32_t{kLaneStride}) continue;
      const uint32_t lane = (dword - first) / result->dwords;
      const uint32_t place = (dword - first) % result->dwords;
      if (((result->lanes >> lane) & 1) == 0) continue;
      if (&other == &wave || result->data[place * kLaneStride + lane] != loaded) return false;
      under_way = true;
    }
  }
  return under_way || LdsContents(dword) == loaded;
}

void Checker::WriteDword(Wave& wave, const Instruction& instruction, uint32_t index, uint8_t bytes,
                         uint32_t sequence, uint8_t writer, const Sequences& seen, int lane,
                         const uint32_t* loaded) {
  LdsDword& dword = lds_[index];
  const auto at = [&] { return "writes LDS byte " + std::to_string(index * 4); };
  const auto last_writer = [&] { return WaveName(dword.writer % kMaxWaves); };
  const uint32_t others = dword.readers & ~(1u << wave.index_in_group);
  int reader = -1;
  const bool meets =
      dword.dma_under_way != 0 || others != 0 || dword.write_sequence > seen[dword.writer];
  if (meets && loaded && ComesAnyway(wave, index, *loaded)) {
    // Nothing that any wave could notice.
  } else if (dword.dma_under_way != 0) [[unlikely]] {
    Report(wave, instruction,
           at() + " while a load to LDS of " + last_writer() + " into it is still under way", lane);
  } else if (others != 0 && (bytes & dword.read_bytes) != 0 &&
             (reader = UnfinishedReader(wave, index, others)) >= 0) [[unlikely]] {
    const bool passed = State(wave).passed > dword.read_phase;
    Suspecting(instruction, index, bytes, lane,
               at() + ", which " + WaveName(static_cast<uint32_t>(reader)) + " reads with no " +
                   (passed ? "wait before the barrier in between" : "barrier in between"));
    dword.readers = 0;
  } else if (dword.write_sequence > seen[dword.writer] && (bytes & dword.last_bytes) != 0 &&
             !(dword.atomic != 0 && IsAtomic(instruction))) [[unlikely]] {
    Suspecting(instruction, index, bytes, lane,
               at() + ", which " + last_writer() +
                   " wrote with no barrier (and wait before it) in between");
  }
  dword.atomic = IsAtomic(instruction) ? 1 : 0;
  dword.writer = writer;
  dword.write_sequence = sequence;
  dword.last_bytes = bytes & 15;
  dword.written |= bytes & 15;
}

void Checker::Suspecting(const Instruction& instruction, uint32_t dword, uint8_t bytes, int lane,
                         std::string what) {
  Suspect suspect = {&instruction, dword, 0, 0, lane, std::move(what)};
  for (uint32_t byte = 0; byte < 4; ++byte) {
    if (((bytes >> byte) & 1) != 0) suspect.mask |= 0xffu << (8 * byte);
  }
  suspect.before = LdsContents(dword);
  suspects_.push_back(std::move(suspect));
}

void Checker::JudgeSuspects(Wave& wave) {
  std::vector<Suspect> suspects;
  suspects.swap(suspects_);
  for (const Suspect& suspect : suspects) {
    const uint32_t after = LdsContents(suspect.dword);
    // Loads to LDS write later.
    const bool by_dma = suspect.instruction->opcode->op_class == OpClass::kLdsDma;
    if (!by_dma && ((after ^ suspect.before) & suspect.mask) == 0) continue;
    Report(wave, *suspect.instruction, suspect.what, suspect.lane);
  }
}

void Checker::LdsRead(Wave& wave, const Instruction& instruction, uint64_t lanes,
                      const uint32_t* addresses, uint32_t bytes) {
  const Sequences seen = SeenBy(wave);
  const uint32_t phase = State(wave).signals, reader = 1u << wave.index_in_group;
  const size_t limit = lds_.size();
  const bool atomic = IsAtomic(instruction);
  if (!atomic && lanes != 0) {
    // The record of this instruction is pushed next.
    LdsReadUnderWay& read = State(wave).lds_reads.emplace_back();
    read.sequence = wave.issued + 1;
    read.lanes = lanes;
    read.bytes = bytes;
    std::copy_n(addresses, wave.lanes, read.addresses.begin());
  }
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const uint32_t address = addresses[lane];
    const auto slowly = [&](uint32_t dword, uint8_t mask) {
      ReadDword(wave, instruction, dword, mask, seen, lane);
    };
    if (((address | bytes) & 3) != 0 || (size_t{address} + bytes) / 4 > limit || atomic)
        [[unlikely]] {
      ForEachDword(address, bytes, limit, slowly);
      continue;
    }
    // Whole dwords, and nearly always nothing is wrong with them.
    LdsDword* dword = &lds_[address / 4];
    for (uint32_t i = 0; i < bytes / 4; ++i, ++dword) {
      if ((dword->dma_under_way | (dword->written ^ 15)) != 0 ||
          dword->write_sequence > seen[dword->writer]) [[unlikely]] {
        slowly(address / 4 + i, 15);
        continue;
      }
      dword->readers = (dword->read_phase == phase ? dword->readers : 0) | reader;
      dword->read_phase = phase;
      dword->read_bytes = 15;
    }
  }
}

void Checker::LdsWrite(Wave& wave, const Instruction& instruction, uint64_t lanes,
                       const uint32_t* addresses, uint32_t bytes) {
  // The record of this instruction is pushed next.
  const auto sequence = static_cast<uint32_t>(wave.issued + 1);
  const Sequences seen = SeenBy(wave);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    ForEachDword(addresses[lane], bytes, lds_.size(), [&](uint32_t dword, uint8_t mask) {
      WriteDword(wave, instruction, dword, mask, sequence, Writer(wave, false), seen, lane);
    });
  }
}

}  // namespace jax_fa::emulator

// The state of the checks for one workgroup. See check/check.h for what the exec families call.
//
// Registers: which lanes of which register were ever written, and which registers have a result
// under way. LDS: per dword, who wrote it last and who has read it since, in an order that only
// barriers make.
//
// A write is visible to another wave when its wave had proved it complete (by a wait) before it
// signalled a barrier that is complete by now. A read is done with when its wave had proved it
// complete, too, before it signalled a barrier that the writer has passed.
#ifndef JAX_FA_EMULATOR_CHECK_CHECKER_H_
#define JAX_FA_EMULATOR_CHECK_CHECKER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/check/access_plan.h"
#include "emulator/check/hazard.h"
#include "emulator/state/wave.h"

namespace jax_fa::emulator {

struct Chip;

class Checker {
 public:
  explicit Checker(const Chip& chip);

  // A new workgroup: nothing is written. `group.waves` have their initial registers declared by
  // DeclareVgpr and DeclareSgpr afterwards.
  void Begin(const Workgroup& group);
  void DeclareVgpr(const Wave& wave, uint32_t index);
  void DeclareSgpr(const Wave& wave, uint32_t index);

  void Before(Wave& wave, const Instruction& instruction, const AccessPlan& plan);
  // `exec` is what EXEC was before the instruction.
  void After(Wave& wave, const AccessPlan& plan, uint64_t exec);

  void IssueResult(Wave& wave, const Instruction& instruction, const InFlight& result);
  void Arrive(Wave& wave, const InFlight& result);

  void SignalBarrier(const Wave& wave);
  void CompleteBarrier(const Workgroup& group);
  void PassBarrier(const Wave& wave);

  void LdsRead(Wave& wave, const Instruction& instruction, uint64_t lanes,
               const uint32_t* addresses, uint32_t bytes);
  void LdsWrite(Wave& wave, const Instruction& instruction, uint64_t lanes,
                const uint32_t* addresses, uint32_t bytes);

 private:
  // Who writes LDS: each wave by instructions, and by LDS-DMA, which completes by another counter.
  static constexpr uint32_t kMaxWaves = 32, kWriterKinds = 2;
  using Sequences = std::array<uint32_t, kMaxWaves * kWriterKinds>;
  static uint8_t Writer(const Wave& wave, bool by_dma) {
    return static_cast<uint8_t>(wave.index_in_group + (by_dma ? kMaxWaves : 0));
  }
  // No wave is further than two signals past a barrier that another has passed.
  static constexpr uint32_t kSignals = 4;
  struct LdsReadUnderWay {
    uint64_t sequence;  // InFlight::sequence
    uint64_t lanes;
    uint32_t bytes;
    std::array<uint32_t, kLaneStride> addresses;
  };
  struct WaveState {
    std::array<uint64_t, kVgprRows> written;  // lanes
    std::array<uint8_t, kVgprRows> busy;      // results under way
    std::array<uint8_t, kSgprCount> sgpr_written;
    std::array<uint8_t, kSgprCount> sgpr_busy;
    // LDS writes up to these sequences were complete at the last signal.
    uint32_t complete_at_signal[kWriterKinds];
    uint32_t signals, passed;  // barriers signalled and passed
    // Reads of LDS that are under way.
    std::vector<LdsReadUnderWay> lds_reads;
    // By signal: the dwords of which a read was under way then, a bit each; empty: none.
    std::array<std::vector<uint64_t>, kSignals> unproven_at_signal;
    bool scc_written;
  };
  struct LdsDword {
    uint32_t write_sequence;              // InFlight::sequence of the last write
    uint32_t read_phase;                  // WaveState::signals of the last readers
    uint32_t readers;                     // waves, a bit each
    uint8_t writer;                       // Writer() of the last write
    uint8_t written : 4, last_bytes : 4;  // bytes ever written, and by the last write
    uint8_t read_bytes : 4;               // by `readers`
    uint8_t atomic : 1;                   // the last write was an atomic operation
    uint8_t dma_under_way;                // loads to LDS that have not arrived
  };

  // A write of LDS that may be a race, until its bytes show whether it changed anything: waves may
  // write the same value to the same place.
  struct Suspect {
    const Instruction* instruction;
    uint32_t dword, before, mask;  // the bits that the instruction writes
    int lane;
    std::string what;
  };

  void CheckRead(Wave& wave, const Instruction& instruction, const Access& access);
  // Lanes in which the upper half of a source that only the upper half of the result depends on was
  // never written.
  uint64_t UndefinedHigh(const Wave& wave, const AccessPlan& plan, uint64_t exec) const;
  void CheckOverwrite(Wave& wave, const Instruction& instruction, const Access& access);
  void ReadDword(Wave& wave, const Instruction& instruction, uint32_t dword, uint8_t bytes,
                 const Sequences& seen, int lane);
  void WriteDword(Wave& wave, const Instruction& instruction, uint32_t dword, uint8_t bytes,
                  uint32_t sequence, uint8_t writer, const Sequences& seen, int lane,
                  const uint32_t* loaded = nullptr);
  // A load to LDS changes nothing: what other waves have under way to this dword, or else its
  // contents, is the same. Several waves may load one place.
  bool ComesAnyway(const Wave& wave, uint32_t dword, uint32_t loaded) const;
  static void FinishLdsReads(uint64_t sequence, std::vector<LdsReadUnderWay>* reads);
  // Notes what is under way at a signal.
  void NoteReadsUnderWay(const WaveState& state, std::vector<uint64_t>* dwords) const;
  // The wave had proved its reads of the dword when it signalled this barrier.
  static bool ReadProven(const WaveState& reader, uint32_t signal, uint32_t dword) {
    const std::vector<uint64_t>& unproven = reader.unproven_at_signal[signal % kSignals];
    return unproven.empty() || ((unproven[dword / 64] >> (dword % 64)) & 1) == 0;
  }
  // One of the waves `others` whose read of the dword may not have happened yet, or -1.
  int UnfinishedReader(const Wave& wave, uint32_t dword, uint32_t others) const;
  void Suspecting(const Instruction& instruction, uint32_t dword, uint8_t bytes, int lane,
                  std::string what);
  uint32_t LdsContents(uint32_t dword) const;
  void JudgeSuspects(Wave& wave);
  // For each writer, the last of its writes that this wave may rely on.
  Sequences SeenBy(const Wave& wave) const;
  WaveState& State(const Wave& wave) { return waves_[wave.index_in_group]; }

  std::vector<WaveState> waves_;
  std::vector<LdsDword> lds_;
  std::vector<Suspect> suspects_;
  std::span<const uint8_t> lds_bytes_;
  const std::unique_ptr<HazardRules> hazards_;
  const bool loads_write_in_order_;
  Sequences visible_ = {};  // writes that a completed barrier has made visible to all
};

}  // namespace jax_fa::emulator

#endif  // JAX_FA_EMULATOR_CHECK_CHECKER_H_

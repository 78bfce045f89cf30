// gfx1201: what a wave does with a tile of keys, wherever the main loop has its operands from.
#ifndef JAX_FA_KERNELS_MAINLOOP_GFX1201_TILE_ATTENTION_H_
#define JAX_FA_KERNELS_MAINLOOP_GFX1201_TILE_ATTENTION_H_

#include "kernels/arch/arch.h"
#include "kernels/attention/mask.h"
#include "kernels/attention/softmax.h"
#include "kernels/device.h"
#include "kernels/tile/fragments.h"

namespace jax_fa {

// The queries of a wave, in registers: operand(q, s) is step s of the head, wanted in the order of
// the steps after start(); after its last use follows advance(s).
template <class Config>
class HeldQuery {
  using Element = typename Config::Element;

 public:
  JAX_FA_DEVICE explicit HeldQuery(const QueryFragments<Config>& query) : query_(query) {}
  JAX_FA_DEVICE void start() {}
  JAX_FA_DEVICE arch::Operand<Element> operand(int query_tile, int step) const {
    return query_.step[query_tile][step];
  }
  JAX_FA_DEVICE void advance(int /*step*/) {}

 private:
  const QueryFragments<Config>& query_;
};

// kSteps: of the head that there are, 16 elements each.
template <class Config, int kSteps = Config::kHeadSteps>
class TileAttention {
  using Element = typename Config::Element;
  static_assert(Config::kHeadSteps == Config::kHeadTiles, "a step of K is as wide as a tile of V");

 public:
  static constexpr int kRingDepth = 4;
  static constexpr int kKeyCount = Config::kScoreTiles * kSteps;  // operands per tile
  static constexpr int kValueCount = Config::kKeySteps * kSteps;
  static constexpr int kCount = kKeyCount + kValueCount;
  static_assert(kCount % kRingDepth == 0, "a tile starts at slot 0");

  // Operands read ahead of the matrix core.
  using Ring = arch::Operand<Element>[kRingDepth];

  // Operand i of K: key fragments in turn, since consecutive matrix instructions then have
  // different accumulators.
  static constexpr int key_fragment(int i) { return i % Config::kScoreTiles; }
  static constexpr int key_step(int i) { return i / Config::kScoreTiles; }
  // Operand i of V: all columns of 16 keys, then those of the next 16.
  static constexpr int value_fragment(int i) { return i / kSteps; }
  static constexpr int value_column(int i) { return i % kSteps; }

  // `ring` has the tile's first operands; read(i) gives the i-th of K, then those of V, then of the
  // next tile. `pause` is called before the values are used.
  template <class Query, class Read, class Pause>
  JAX_FA_DEVICE static void run(int tile, const TileRange& wave, const Mask& mask,
                                const QueryRows<Config>& rows, Query query,
                                Softmax<Config>& softmax, OutputFragments<Config>& output,
                                Ring& ring, Read read, Pause pause) {
    ScoreFragments<Config> scores;
    score(query, ring, read, [](int) { return arch::Accumulator(0.0f); }, scores);
    softmax.cap(scores);
    if (__builtin_expect(wave.cut(tile), 0)) {
      apply_mask<Config>(mask, wave, arch::opaque_uniform(tile), rows, scores);
    }
    const ProbabilityFragments<Config> p = softmax.update(scores, output);
    pause();
    accumulate(p, ring, read, output);
  }

  // The same with the Softmax of guarded_softmax.h: a tile in which a score is too large for its
  // row's reference is made again, from its first operands on.
  template <class Query, class Read, class Pause>
  JAX_FA_DEVICE static void run_guarded(int tile, const TileRange& wave, const Mask& mask,
                                        const QueryRows<Config>& rows, Query query,
                                        Softmax<Config>& softmax, OutputFragments<Config>& output,
                                        Ring& ring, Read read, Pause pause) {
    // A row may see its first key in every tile up to the first that all rows see whole.
    const bool common = tile > max_int(wave.begin, wave.full_begin) && !wave.cut(tile);
    u32 careful = softmax.has_base();
    if (!common) careful = 1;
    ProbabilityFragments<Config> p;
    u32 again;
#pragma nounroll
    do {
      careful = arch::opaque_uniform(careful);  // or the compiler makes two loops of one
      ScoreFragments<Config> scores;
      score(query, ring, read, [&](int q) { return softmax.start(q); }, scores);
      softmax.cap(scores);
      if (__builtin_expect(careful != 0, 0)) {
        if (wave.cut(tile)) {
          apply_mask<Config>(mask, wave, arch::opaque_uniform(tile), rows, scores);
        }
        softmax.move_references(scores, output);
      }
      again = softmax.update(scores, careful, p);
      if (__builtin_expect(again != 0, 0)) {
        careful = 1;
        JAX_FA_UNROLL for (int i = 0; i < kRingDepth; ++i) ring[i] = read(i);
      }
    } while (again != 0);
    pause();
    accumulate(p, ring, read, output);
  }

 private:
  // `start` gives what the sums of a query tile start from.
  template <class Query, class Read, class Start>
  JAX_FA_DEVICE static void score(Query& query, Ring& ring, Read read, Start start,
                                  ScoreFragments<Config>& scores) {
    JAX_FA_UNROLL for (int i = 0; i < kKeyCount; ++i) {
      JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
        arch::Accumulator& s = scores.keys[q][key_fragment(i)];
        s = arch::multiply_add(ring[i % kRingDepth], query.operand(q, key_step(i)),
                               key_step(i) ? s : start(q));
      }
      arch::fence_schedule();
      if (key_fragment(i) == Config::kScoreTiles - 1) query.advance(key_step(i));
      ring[i % kRingDepth] = read(i + kRingDepth);
      arch::fence_schedule();
    }
  }

  template <class Read>
  JAX_FA_DEVICE static void accumulate(const ProbabilityFragments<Config>& p, Ring& ring, Read read,
                                       OutputFragments<Config>& output) {
    arch::fence_schedule();
    JAX_FA_UNROLL for (int i = 0; i < kValueCount; ++i) {
      const int slot = (kKeyCount + i) % kRingDepth;
      JAX_FA_UNROLL for (int q = 0; q < Config::kQueryTiles; ++q) {
        arch::Accumulator& o = output.head[q][value_column(i)];
        o = arch::multiply_add(ring[slot], p.step[q][value_fragment(i)], o);
      }
      arch::fence_schedule();
      ring[slot] = read(kKeyCount + i + kRingDepth);
      arch::fence_schedule();
    }
  }
};

}  // namespace jax_fa

#endif  // JAX_FA_KERNELS_MAINLOOP_GFX1201_TILE_ATTENTION_H_

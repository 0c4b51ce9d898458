// The peak of AMX: tiles of 16 × 16 sums, four of them in turn, from two tiles each of rows and columns.
#include "kernels/peaks.h"
#include "kernels/amx/tiles.h"

namespace liuli::kernels {
namespace {

constexpr int kTiles = 4, kRows = 16, kColumns = 16;

void tiles_bf16(int64_t rounds) noexcept {
  alignas(64) static const uint8_t zeros[1024] = {};
  load_tile_config(make_tile_config(kRows, 6, 7));
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  tile_load<4>(zeros, 64);
  tile_load<5>(zeros, 64);
  tile_load<6>(zeros, 64);
  tile_load<7>(zeros, 64);
  for (int64_t i = 0; i < rounds; i++) {
    tile_dot_bf16<0, 4, 6>();
    tile_dot_bf16<1, 4, 7>();
    tile_dot_bf16<2, 5, 6>();
    tile_dot_bf16<3, 5, 7>();
  }
  release_tiles();
}

constexpr PeakLoop kLoops[] = {{"bf16 tiles", 2.0 * kRows* kColumns * 32 * kTiles, tiles_bf16}};

}  // namespace

PeakTable LIULI_AMX_NAME(peaks)() noexcept { return {kLoops, 1}; }

}  // namespace liuli::kernels

// The kernels' one table: a function pointer per kernel, its contract above it.
//
// Kernels take numbers and give numbers: they allocate nothing, throw nothing, know no model words. All rows
// are f32 unless said otherwise; "row r of x" is x + r * ldx, with ldx in floats. The caller has checked
// every shape. Every table entry computes a row of its output from that row's input alone, in a fixed order.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace liuli::kernels {

/// Instruction set levels, each a complete table. A later level is preferred where the machine has it.
enum class Isa { scalar, avx2, avxvnni, avx512, avx512_bf16, amx, neon };
inline constexpr Isa kAllIsas[] = {Isa::scalar,      Isa::avx2, Isa::avxvnni, Isa::avx512,
                                   Isa::avx512_bf16, Isa::amx,  Isa::neon};

// ---- activations of the decode class --------------------------------------------------------------------

/// One row's activations for one chunk of 256, as 16-bit integers ("x16"): x ≈ scale · q, q = 256 · hi + lo.
/// scale = max|x| / 32512 over the chunk; values beyond the end of a row are zero.
struct alignas(64) ActivationChunk {
  int8_t hi[256], lo[256];  ///< the two i8 planes that u8 × i8 dot products want
  int16_t q[256];  ///< the same integers, for i16 × i16 products: every four columns in the order 0 2 1 3
  int32_t negative_sum32[8];  ///< −Σ q of each 32: takes a code's offset off the integer accumulator
  int32_t negative_sum16[16];
  float sum32[8];  ///< Σ q of each 32 as f32: multiplies a block's minimum
  float sum16[16];
  float scale;
};
inline int activation_chunks(int64_t k) { return static_cast<int>((k + 255) / 256); }

// ---- weights --------------------------------------------------------------------------------------------

constexpr int kPanelRows =
    16;  ///< weight rows in a panel; the last panel of a matrix is filled with zero rows

/// How sixteen rows of a stored type lie side by side in memory (panels.h describes the form of each type).
/// A panel is a permutation of its rows' file bytes; K is padded to kPanelK with zero blocks.
struct PanelLayout {
  const char*
      name;  ///< "granules": 4-byte granules of the 16 rows interleaved; "rows": file rows one after another
  /// Bytes of a panel over k columns: a multiple of 64, base addresses are 64-byte aligned.
  size_t (*bytes)(int64_t k) noexcept;
  /// Writes one file row into lane `lane` of a panel that was zeroed before its first lane.
  void (*pack_row)(const uint8_t* row, uint8_t* panel, int lane, int64_t k) noexcept;
  /// The exact inverse of pack_row.
  void (*unpack_row)(const uint8_t* panel, uint8_t* row, int lane, int64_t k) noexcept;
};
constexpr int kPanelK = 64;

/// The layout of a type; the same for every ISA. Integer types (I8…I64, F64) have the "rows" form too.
const PanelLayout& panel_layout(DType type) noexcept;

/// Decodes n elements of one file row, exactly as published: bit for bit, no fused multiply-add (scalar,
/// every type). n is a multiple of the type's block.
void decode_row(DType type, const uint8_t* row, int64_t n, float* out) noexcept;

/// What multiplies panels of one stored type. `act` and `x` cover k rounded up to kPanelK (zeros beyond k).
struct WeightKernels {
  const char* name;     ///< for the plan: "Q4_K panel, VNNI"
  bool fast;            ///< false: by way of scalar code or expansion
  bool integer_decode;  ///< decode_x16 below exists; otherwise decode_f32 is used

  /// Decode class, quantised types. y[m][0…15] = panel · x_m for m < n_rows; act[chunk · n_rows + m] is row
  /// m's chunk. Per sub-block of 32 (or 16): f = fma(float(Σ code·q), scale, f), then f = fma(minimum, Σ q,
  /// f), sub-blocks ascending; per chunk: total = fma(f, act.scale, total). The integer sums are exact, so
  /// every ISA gives the same bits.
  void (*decode_x16)(const uint8_t* panel, int64_t k, const ActivationChunk* act, int n_rows, float* y,
                     ptrdiff_t ldy) noexcept;
  /// Decode class, F16 BF16 F32 (and types that are expanded): f32 FMA into two accumulators, even k and odd
  /// k, added last.
  void (*decode_f32)(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                     ptrdiff_t ldy) noexcept;
  /// f32 class: f32 FMA over exactly decoded weights, one accumulator per output, k ascending.
  void (*product_f32)(const uint8_t* panel, int64_t k, const float* x, ptrdiff_t ldx, int n_rows, float* y,
                      ptrdiff_t ldy) noexcept;
  /// Prompt class: columns [k_begin, k_end) (multiples of 32; zeros beyond k) as bf16 tiles, round to nearest
  /// even of the decoded weight: per 32 columns one tile of 16 k-pairs × 16 rows × 2 (1 KiB), tiles ascending
  /// in k.
  void (*expand_bf16)(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end,
                      uint16_t* tiles) noexcept;
  /// Prompt class: columns [k_begin, k_end) (multiples of 64) in 16-bit fixed point, block after block (fixed16.h); the
  /// same bits on every ISA. Where it is not null prompts multiply that way: F16 on every level, whose own error is
  /// smaller than bf16's; other types on levels where pairs of integers are faster than bf16 or f32 products.
  void (*expand_fixed16)(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end,
                         int16_t* lines) noexcept;
  /// Prompts in 8 bits, types with integer codes (else null): columns [k_begin, k_end) (multiples of 32) as the
  /// file's codes, signed, with scales and minima as f32 (int8_blocks.h); the same bits on every ISA.
  void (*expand_codes)(const uint8_t* panel, int64_t k, int64_t k_begin, int64_t k_end,
                       int8_t* blocks) noexcept = nullptr;
  bool two_scales = false, has_minimum = false;  ///< of such a block of 32 columns
  int code_least = -128, code_most = 127;        ///< bounds of its codes: narrow ones multiply faster
};

/// Rows to x16. x has k values per row; out[chunk · n_rows + m].
using QuantizeRows = void (*)(const float* x, ptrdiff_t ldx, int n_rows, int64_t k,
                              ActivationChunk* out) noexcept;

/// The prompt product: bf16 tiles of weights against packed activations, one f32 accumulator per output that
/// takes 32 columns at a time in ascending order. In 16-bit fixed point: y = fma(Σ w·x of 64 columns, an exact integer,
/// w_scale · x_scale, y), blocks ascending, so that every ISA gives the same bits. In 8 bits likewise, as int8_blocks.h
/// says. The bits of a row depend neither on n_rows nor on the blocking.
struct PromptKernels {
  const char* name;
  /// Bytes of n_rows packed rows (rounded up to strips of 16), and of one thread's scratch for products of
  /// that size.
  size_t (*packed_bytes)(int n_rows, int64_t k) noexcept;
  size_t (*scratch_bytes)(int n_rows, int64_t k) noexcept;
  /// Packs rows [16 · strip, …) of x into their place in `packed`; missing rows become zeros.
  void (*pack_strip)(const float* x, ptrdiff_t ldx, int n_rows, int64_t k, int strip, void* packed) noexcept;
  /// y[m][16 · p …] = panel p · x_m for panels [panel_begin, panel_end) of the matrix at `panels`.
  void (*multiply)(const WeightKernels& weight, const uint8_t* panels, size_t panel_bytes, int panel_begin,
                   int panel_end, int64_t k, const void* packed, int n_rows, float* y, ptrdiff_t ldy,
                   void* scratch) noexcept;
  bool bf16_activations = false;  ///< packed activations are rounded to bf16 (nearest even); else f32
};

// ---- attention ------------------------------------------------------------------------------------------

constexpr int kPagePositions = 64;  ///< positions per page of the KV cache

/// What a position of a page holds: a key and a value; or, shared, a key whose first value_dim ≤ head_dim entries are the
/// value too, kept once (latent attention).
struct PageShape {
  int head_dim, value_dim;
  bool shared_values = false;
};

/// Queries of one key/value head's group at consecutive positions, against that head's pages.
struct AttentionArgs {
  const float* q;  ///< row i, head g of the group: q + i · q_row + g · q_head, head_dim values
  ptrdiff_t q_row, q_head;
  float* z;  ///< likewise, value_dim values
  ptrdiff_t z_row, z_head;
  const uint8_t* const* pages;  ///< the head's pages, page p holds positions [64 p, 64 p + 64)
  int first_position;  ///< position of row 0; row i sees keys up to first_position + i, unless bidirectional
  int n_rows, group;
  int head_dim, value_dim;
  bool shared_values = false;  ///< as PageShape
  int n_keys;                  ///< keys present; only a bidirectional row looks at all of them
  bool causal;
  int window;  ///< 0: none; else key u is visible iff 0 ≤ t − u < window
  float scale,
      soft_cap;  ///< score = scale · q·k, then soft_cap · tanh(score / soft_cap) unless soft_cap is 0
  /// Optional: scaled (soft-capped) scores as the kernel saw them, [group][n_rows][n_keys] (garbage where
  /// masked), and each row's maximum and sum of exponentials [group][n_rows], so that pattern = exp(score −
  /// max) / sum.
  float* scores = nullptr;
  float* row_max = nullptr;
  float* row_sum = nullptr;

  PageShape page_shape() const { return {head_dim, value_dim, shared_values}; }
};

/// Attention over one cache form. A row walks blocks of 256 positions aligned to absolute position in
/// ascending order: its bits do not depend on the rows it comes with.
struct AttentionKernels {
  const char* name;
  /// Bytes of one page of one kv head; bytes of one thread's scratch.
  size_t (*page_bytes)(PageShape shape) noexcept;
  size_t (*scratch_bytes)(PageShape shape, int group) noexcept;
  /// Writes position `slot` (0…63) of a page that was zeroed when new; v is not looked at where values are shared.
  void (*append)(uint8_t* page, int slot, const float* k, const float* v, PageShape shape) noexcept;
  /// Reads it back as stored.
  void (*read)(const uint8_t* page, int slot, float* k, float* v, PageShape shape) noexcept;
  void (*attend)(const AttentionArgs& args, void* scratch) noexcept;
  /// exp as `attend` computes it: pattern[i] = exp(scores[i] − max) / sum for i < n.
  void (*pattern)(const float* scores, float max, float sum, int n, float* out) noexcept;
  /// What the products round to bf16 (nearest even) before they multiply: scale · q; exp(score − max), with the
  /// maximum as it stands after the block of 256 positions.
  bool bf16_query = false, bf16_weights = false;
  /// Over pages of codes, the decode class: 16-bit integers against the codes themselves, where `attend` rounds them to
  /// bf16 too. Null: `attend` does for every class.
  void (*attend_generated)(const AttentionArgs& args, void* scratch) noexcept = nullptr;
};

// ---- rows -----------------------------------------------------------------------------------------------

/// Element-wise work and reductions over one row of n values. Reductions have one fixed order per ISA and n.
struct RowKernels {
  /// y = x / σ · γ, σ = √(mean(x²) + eps); γ may be null (all ones). Returns σ. y may be x.
  float (*rms_norm)(const float* x, const float* gamma, float eps, int64_t n, float* y) noexcept;
  /// y = (x − μ) / σ · γ + β, σ = √(mean((x − μ)²) + eps); γ, β may be null. Writes μ, returns σ. y may be x.
  float (*layer_norm)(const float* x, const float* gamma, const float* beta, float eps, int64_t n, float* y,
                      float* mean) noexcept;
  void (*add)(float* x, const float* a, int64_t n) noexcept;                      ///< x += a
  void (*scale_add)(float* x, float factor, const float* a, int64_t n) noexcept;  ///< x = factor · x + a
  void (*scale)(float* x, float factor, int64_t n) noexcept;                      ///< x *= factor
  void (*silu)(const float* x, int64_t n, float* y) noexcept;                     ///< x · sigmoid(x)
  void (*gelu_tanh)(const float* x, int64_t n, float* y) noexcept;
  void (*gelu_erf)(const float* x, int64_t n, float* y) noexcept;
  void (*relu)(const float* x, int64_t n, float* y) noexcept;
  void (*silu_backward)(const float* x, const float* dy, int64_t n, float* dx) noexcept;  ///< dx = dy · f′(x)
  void (*gelu_tanh_backward)(const float* x, const float* dy, int64_t n, float* dx) noexcept;
  void (*gelu_erf_backward)(const float* x, const float* dy, int64_t n, float* dx) noexcept;
  void (*relu_backward)(const float* x, const float* dy, int64_t n, float* dx) noexcept;  ///< f′(0) = 0
  void (*multiply)(float* x, const float* a, int64_t n) noexcept;                         ///< x *= a
  /// Rotates pairs (i, i + half) by the angle whose cosine and sine are cos[i], sin[i].
  void (*rope)(float* x, const float* cos, const float* sin, int64_t half) noexcept;
  void (*soft_cap)(float* x, float cap, int64_t n) noexcept;      ///< cap · tanh(x / cap)
  void (*softmax)(const float* x, int64_t n, float* y) noexcept;  ///< exp(x − max) / Σ
  float (*log_sum_exp)(const float* x, int64_t n) noexcept;
  /// First index of the largest value. NaN never wins: 0 if there is no number at all, −1 if n = 0.
  int64_t (*argmax)(const float* x, int64_t n) noexcept;
};

// ---- products of plain arrays ----------------------------------------------------------------------------

/// C[i][j] = Σ_k A[i][k] · B[k][j], or added to what C holds. Strides are in floats; one of A's is 1, and one of B's.
struct GemmArgs {
  int64_t m, n, k;
  const float* a;
  int64_t a_m, a_k;  ///< A[i][k] = a[i · a_m + k · a_k]
  const float* b;
  int64_t b_k, b_n;  ///< B[k][j] = b[k · b_k + j · b_n]
  float* c;
  int64_t c_row;
  bool accumulate = false;
};

/// Columns of A and rows of B that are packed and multiplied at once.
constexpr int64_t kGemmBlock = 512;

/// One thread's part; callers split C. An output is one f32 accumulator over ascending k: parts and shapes change no bit.
/// The bf16 kernel rounds both operands to bf16 (nearest even) as it packs them; a level may add its products in pairs.
struct GemmKernel {
  const char* name;
  int tile_rows, tile_columns;  ///< parts of C are best cut at multiples of these
  size_t (*scratch_floats)(int64_t m, int64_t n, int64_t k) noexcept;
  void (*multiply)(const GemmArgs& args, float* scratch) noexcept;  ///< scratch: aligned to 64 bytes
  /// The same in two steps for k ≤ kGemmBlock, so that threads share a packed B: its strips [first, last) of tile_columns
  /// each, into their place in `packed`; then any rows with a scratch of scratch_floats(m, 0, k).
  size_t (*packed_floats)(int64_t n, int64_t k) noexcept;
  void (*pack)(const GemmArgs& args, int64_t first, int64_t last, float* packed) noexcept;
  void (*multiply_packed)(const GemmArgs& args, const float* packed, float* scratch) noexcept;
};

/// Everything one ISA level offers.
struct Kernels {
  Isa isa;
  const char* name;
  WeightKernels weights[kDTypeCount];  ///< indexed by DType
  QuantizeRows quantize_x16;
  PromptKernels prompt;
  PromptKernels prompt_fixed16;                     ///< for weights that have expand_fixed16
  PromptKernels prompt_int8;                        ///< on request, for weights that have expand_codes
  AttentionKernels attention;                       ///< bf16 cache, every class but f32
  AttentionKernels attention_f16;                   ///< f16 cache, f32 products: for files of F16 matrices
  AttentionKernels attention_q8_0, attention_q4_0;  ///< caches of codes, multiplied as bf16
  AttentionKernels attention_f32;                   ///< f32 cache; the f32 class's
  RowKernels rows;
  GemmKernel gemm;
  GemmKernel gemm_bf16;  ///< operands rounded to bf16: what training may multiply with
};

/// The table for this process: the best level of the machine, or LIULI_ISA's (scalar, avx2, avx512,
/// avx512_bf16, amx, neon). Throws Error invalid_argument for an unknown or impossible LIULI_ISA. Decided once.
const Kernels& best_kernels();
/// The table of a level, or null if this machine (or build) lacks it.
const Kernels* kernels_for(Isa isa);
/// The second opinion: scalar loops that accumulate in double; its products work on file rows (see
/// ops/linear).
const RowKernels& exact_rows();
const AttentionKernels& exact_attention();

}  // namespace liuli::kernels

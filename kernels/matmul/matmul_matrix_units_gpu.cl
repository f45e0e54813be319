// Matrix products by matrix units (matrix_units.clh): a work-group makes a tile of TM x TN sums in f32, a wave RM x RN of them. Slices
// of TK come through local memory, two of each operand, laid out as in memory, so that whole chunks of 16 bytes are copied.
//
// STAGES: so many slices of each, copied to local memory while others are multiplied, without registers in between.
#include "epilogue.clh"
#ifdef STAGES
#define UNIT_TURNED
#endif
#include "matrix_units.clh"

#ifdef TRANSPOSE_A
#define A_ALONG_K 0
#else
#define A_ALONG_K 1
#endif
#ifdef TRANSPOSE_B
#define B_ALONG_K 1
#else
#define B_ALONG_K 0
#endif

// Elements that come without registers in between are rounded here.
#ifdef STAGES
#define LOADED UNIT_ROUNDED4
#else
#define LOADED(operand) operand
#endif

#define WAVES (TM / RM * (TN / RN))
#define ITEMS (WAVES * UNIT_WAVE)

// A slice is lines of so many elements, as the operand is in memory. In local memory they are a chunk longer, so that they begin in
// different banks, or turned.
#if A_ALONG_K
#define A_LINE TK
#else
#define A_LINE TM
#endif
#if B_ALONG_K
#define B_LINE TK
#else
#define B_LINE TN
#endif
#ifdef STAGES
#define SLICES STAGES
#define A_STRIDE A_LINE
#define B_STRIDE B_LINE
#else
#define SLICES 2
#define A_STRIDE (A_LINE + UNIT_CHUNK)
#define B_STRIDE (B_LINE + UNIT_CHUNK)
#endif
#define A_SLICE (TM * TK / A_LINE * A_STRIDE)
#define B_SLICE (TN * TK / B_LINE * B_STRIDE)

// Chunks of a slice that an item brings; the line of its e-th, and the place in that.
#define CHUNKS_A (TM * TK / UNIT_CHUNK / ITEMS)
#define CHUNKS_B (TN * TK / UNIT_CHUNK / ITEMS)
#define CHUNK_LINE(e, length) ((item + (e) * ITEMS) / ((length) / UNIT_CHUNK))
#define CHUNK_PLACE(e, length) ((item + (e) * ITEMS) % ((length) / UNIT_CHUNK) * UNIT_CHUNK)

// Where lines begin at multiples of 16 bytes, chunks are inside of them or behind their ends.
#ifdef STAGES
UNIT_INLINE void copy_chunk(local unit_stored *chunk, global const unit_stored *from, const int line, const int place, const int lines,
                            const int length, const int stride) {
  const int inside = line < lines && place < length;
  UNIT_COPY(chunk, inside ? from + line * stride + place : from, inside);
}
#else
UNIT_INLINE uint4 fetched(global const unit_stored *from, const int line, const int place, const int lines, const int length,
                          const int stride) {
  return line < lines && place < length ? *(global const uint4 *)(from + line * stride + place) : (uint4)(0u);
}
#endif
// Where they do not, element by element into local memory. Loops stay loops here: they shall not take the other way's registers.
UNIT_INLINE void copy(local unit_stored *chunk, global const unit_stored *from, const int line, const int place, const int lines,
                      const int length, const int stride) {
  #pragma unroll 1
  for (int i = 0; i < UNIT_CHUNK; ++i)
    chunk[i] = line < lines && place + i < length ? UNIT_ROUNDED(from[line * stride + place + i]) : (unit_stored)0;
}

// An operand's e-th chunk of the slice at k0, and the ends: line, place, lines, length, stride.
#if A_ALONG_K
#define OF_A(k0, e) row0 + CHUNK_LINE(e, A_LINE), (k0) + CHUNK_PLACE(e, A_LINE), m, end, all_k
#else
#define OF_A(k0, e) (k0) + CHUNK_LINE(e, A_LINE), row0 + CHUNK_PLACE(e, A_LINE), end, m, m
#endif
#if B_ALONG_K
#define OF_B(k0, e) column0 + CHUNK_LINE(e, B_LINE), (k0) + CHUNK_PLACE(e, B_LINE), n, end, all_k
#else
#define OF_B(k0, e) (k0) + CHUNK_LINE(e, B_LINE), column0 + CHUNK_PLACE(e, B_LINE), end, n, n
#endif
#define IN_SLICE_A(e) (slice_a + UNIT_PLACE(CHUNK_LINE(e, A_LINE), CHUNK_PLACE(e, A_LINE), A_STRIDE))
#define IN_SLICE_B(e) (slice_b + UNIT_PLACE(CHUNK_LINE(e, B_LINE), CHUNK_PLACE(e, B_LINE), B_STRIDE))
// Element by element, where lines do not begin at multiples of 16 bytes.
#define COPY(k0)                                                                       \
  {                                                                                    \
    _Pragma("unroll 1")                                                                \
    for (int e = 0; e < CHUNKS_A; ++e) copy(IN_SLICE_A(e), from_a, OF_A(k0, e));       \
    _Pragma("unroll 1")                                                                \
    for (int e = 0; e < CHUNKS_B; ++e) copy(IN_SLICE_B(e), from_b, OF_B(k0, e));       \
  }
#ifdef STAGES
#define BRING(k0, stage)                                                                     \
  {                                                                                          \
    local unit_stored *slice_a = slices + (stage) * (A_SLICE + B_SLICE), *slice_b = slice_a + A_SLICE; \
    if (aligned) {                                                                           \
      _Pragma("unroll")                                                                      \
      for (int e = 0; e < CHUNKS_A; ++e) copy_chunk(IN_SLICE_A(e), from_a, OF_A(k0, e));     \
      _Pragma("unroll")                                                                      \
      for (int e = 0; e < CHUNKS_B; ++e) copy_chunk(IN_SLICE_B(e), from_b, OF_B(k0, e));     \
    } else if ((k0) < end)                                                                   \
      COPY(k0)                                                                               \
    UNIT_COPIES_END;                                                                         \
  }
#else
#define FETCH(k0)                                                                      \
  {                                                                                    \
    _Pragma("unroll")                                                                  \
    for (int e = 0; e < CHUNKS_A; ++e) next_a[e] = fetched(from_a, OF_A(k0, e));       \
    _Pragma("unroll")                                                                  \
    for (int e = 0; e < CHUNKS_B; ++e) next_b[e] = fetched(from_b, OF_B(k0, e));       \
  }
#endif

// From `first` on k is cut into parts of `part` elements, a multiple of UNIT_CHUNK, whose results follow one another in c (part_stride
// apart). ADD: to what c holds.
UNIT_ATTRIBUTES __attribute__((reqd_work_group_size(ITEMS, 1, 1))) kernel void matmul_matrix_units_gpu(
    IN(a), IN(b), IN(bias), OUT(c), const int has_bias, const int m, const int n, const int all_k, const int a_batch,
    const int b_batch, const int c_batch, const int first, const int part, const int parts, const int part_stride EPILOGUE_PARAMETERS) {
  local unit_stored slices[SLICES * (A_SLICE + B_SLICE)] __attribute__((aligned(16)));
  UNIT_MEMORY(WAVES)
  const int item = (int)get_local_id(0), lane = item % UNIT_WAVE, wave = item / UNIT_WAVE;
  const int batch = (int)get_global_id(2) / parts, which = (int)get_global_id(2) % parts;
  const int row0 = (int)get_global_id(1) * TM, column0 = (int)get_global_id(0) / ITEMS * TN;
  // Where the wave's sums are in the tile.
  const int wave_row = wave / (TN / RN) * RM, wave_column = wave % (TN / RN) * RN;
  const int c0 = batch * c_batch + which * part_stride;
  const int begin = first + which * part, end = min(all_k, begin + part);
  global const unit_stored *from_a = (global const unit_stored *)PTR(a) + batch * a_batch;
  global const unit_stored *from_b = (global const unit_stored *)PTR(b) + batch * b_batch;
  // Whether all lines of both begin at multiples of 16 bytes, as buffers do.
  const int aligned = ((int)a_offset + batch * a_batch) % UNIT_CHUNK == 0 && (A_ALONG_K ? all_k : m) % UNIT_CHUNK == 0 &&
                      ((int)b_offset + batch * b_batch) % UNIT_CHUNK == 0 && (B_ALONG_K ? all_k : n) % UNIT_CHUNK == 0;

  float sum[RM / 16][RN / 16][UNIT_SUMS];
  #pragma unroll
  for (int i = 0; i < RM / 16; ++i)
    #pragma unroll
    for (int j = 0; j < RN / 16; ++j)
      #pragma unroll
      for (int s = 0; s < UNIT_SUMS; ++s) sum[i][j][s] = 0.0f;

  int turn = 0;
#ifdef STAGES
  #pragma unroll
  for (int stage = 0; stage < STAGES - 1; ++stage) BRING(begin + stage * TK, stage)
#else
  uint4 next_a[CHUNKS_A], next_b[CHUNKS_B];
  if (aligned) FETCH(begin)
#endif
  for (int k0 = begin; k0 < end; k0 += TK) {
    local unit_stored *slice_a = slices + turn * (A_SLICE + B_SLICE), *slice_b = slice_a + A_SLICE;
#ifdef STAGES
    UNIT_COPIES_WAIT(STAGES - 2);
    // All have copied this slice, and are through with the one before, whose place is free.
    barrier(CLK_LOCAL_MEM_FENCE);
    BRING(k0 + (STAGES - 1) * TK, (turn + STAGES - 1) % STAGES)
#else
    if (aligned) {
      #pragma unroll
      for (int e = 0; e < CHUNKS_A; ++e) *(local uint4 *)IN_SLICE_A(e) = UNIT_ROUNDED4(next_a[e]);
      #pragma unroll
      for (int e = 0; e < CHUNKS_B; ++e) *(local uint4 *)IN_SLICE_B(e) = UNIT_ROUNDED4(next_b[e]);
    } else
      COPY(k0)
    // One for both: who is a slice ahead writes the other pair.
    barrier(CLK_LOCAL_MEM_FENCE);
    if (aligned) FETCH(k0 + TK)
#endif
    #pragma unroll
    for (int k = 0; k < TK; k += UNIT_DEPTH) {
      unit_operand left[RM / 16], right[RN / 16];
      #pragma unroll
      for (int i = 0; i < RM / 16; ++i) {
        left[i] = LOADED(unit_load_a(slice_a, A_STRIDE, A_ALONG_K, wave_row + 16 * i, k, lane));
      }
      #pragma unroll
      for (int j = 0; j < RN / 16; ++j) {
        right[j] = LOADED(unit_load_b(slice_b, B_STRIDE, B_ALONG_K, wave_column + 16 * j, k, lane));
      }
      #pragma unroll
      for (int i = 0; i < RM / 16; ++i)
        #pragma unroll
        for (int j = 0; j < RN / 16; ++j) unit_multiply(sum[i][j], left[i], right[j] UNIT_ARGUMENTS);
    }
    turn = (turn + 1) % SLICES;
  }

  #pragma unroll
  for (int i = 0; i < RM / 16; ++i)
    #pragma unroll
    for (int j = 0; j < RN / 16; ++j)
      #pragma unroll
      for (int s = 0; s < UNIT_SUMS; ++s) {
        const int row = row0 + wave_row + 16 * i + UNIT_ROW(lane, s), column = column0 + wave_column + 16 * j + UNIT_COLUMN(lane, s);
        const int at = c0 + row * n + column;
        if (row >= m || column >= n) continue;
        float value = has_bias ? sum[i][j][s] + LOAD(bias, column) : sum[i][j][s];
#ifdef ADD
        value += LOAD(c, at);
#endif
        STORE(c, at, EPILOGUE(value, at, column));
      }
}

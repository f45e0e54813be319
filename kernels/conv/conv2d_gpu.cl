// Convolution and its gradients on GPUs as products (gemm_gpu.clh) whose operands are read from the images as they lie. Defined are KH,
// KW, SH, SW, DH, DW and one of
//   FORWARD   y {o, (n, oy, ox)} = w {o, (c, kh, kw)} * x
//   DATA      x {c, (n, iy, ix)} = w' {c, (o, kh, kw)} * y, one product per phase: pixels of the same remainder by the stride, which
//             see every stride-th tap only (then the dilation is 1): see conv2d_phases.clh
//   WEIGHTS   w {o, (c, kh, kw)} = y {o, (n, oy, ox)} * x'
// each for one group. Parts along k follow one another in the output. ADD: to what it holds.
//
// Places are cast to uint where elements are loaded: to extend a sign takes AMD's an instruction for each.
#include "conv2d_slices.clh"
#include "epilogue.clh"

// BLOCKED orders k otherwise in FORWARD and DATA: TK channels of one tap, those of the next tap, and after all taps the next TK
// channels. A slice has one tap then, which is computed once; that each reads w in strides does not matter, as the taps share its
// lines. `channels` is what k runs over; RAGGED: it is no multiple of TK, and the order goes on as if it were.

#if defined(FORWARD)
#define TAPS (KH * KW)
#define OVER_TAPS(i) ((i) / TAPS)
#define TAP(i) ((uint)(i) % TAPS)
#define B_ALONG_K 0
// (iy0, ix0): what the first tap of the item's pixel sees, at `from` in the first channel, which may lie outside of the image.
#define GEMM_PARAMETERS                                                                                                    \
  , IN(w), IN(x), const int rows, const int channels, const int w0, const int row0, const int from, \
      const int H, const int W, const int iy0, const int ix0
#define GEMM_ARGUMENTS , w_base, w_offset, x_base, x_offset, OG, CG, w0, row0, from, H, W, iy0, ix0
#define SEEN_Y(tap) (iy0 + (int)((tap) / KW) * DH)
#define SEEN_X(tap) (ix0 + (int)((tap) % KW) * DW)
#define LOAD_SEEN(i) LOAD(x, (uint)(i))
#define SEEN_HEIGHT H
#define SEEN_WIDTH W
#define WEIGHT_AT(row, c, tap) (w0 + ((row) * channels + (c)) * TAPS + (int)(tap))

#elif defined(DATA)
#include "conv2d_phases.clh"
#if UNEVEN && PH <= 2 && PW <= 2
// The phase has one or two taps along each axis. (In the loop everything counts that takes a register.)
#define OVER_TAPS(i) ((int)((uint)(i) >> tap_bits))
#define TAP(i) ((uint)(i) - ((uint)(i) >> tap_bits << tap_bits))
#define TAP_ROW(tap) ((int)(tap) >> column_bits)
#define TAP_COLUMN(tap) ((int)(tap) & column_bits)
#define PHASE_PARAMETERS , const int tap_bits, const int column_bits
#define COLUMN_BITS (PW == 1 ? 0 : PHASE_WIDTH(phase) - 1)
#define PHASE_ARGUMENTS , (PH == 1 ? 0 : PHASE_HEIGHT(phase) - 1) + COLUMN_BITS, COLUMN_BITS
#elif UNEVEN
// The phase's taps, and how to divide by them and by those of a row of them without a division.
#define TAPS phase_taps
#define OVER_TAPS(i) ((int)clnet_quotient((uint)(i), by_taps))
#define TAP(i) ((uint)(i) - (uint)OVER_TAPS(i) * TAPS)
#define TAP_ROW(tap) ((int)clnet_quotient(tap, by_row))
#define TAP_COLUMN(tap) ((int)(tap) - TAP_ROW(tap) * row_taps)
#define PHASE_PARAMETERS , const uint phase_taps, const int row_taps, const uint by_taps, const uint by_row
#define PHASE_ARGUMENTS \
  , (uint)(PHASE_HEIGHT(phase) * PHASE_WIDTH(phase)), PHASE_WIDTH(phase), INVERSE(PHASE_HEIGHT(phase) * PHASE_WIDTH(phase)), \
      INVERSE(PHASE_WIDTH(phase))
// i / d by INVERSE(d), where (i + 1) * d fits 32 bits. Phases without taps divide nothing.
#define INVERSE(d) (0xffffffffu / (uint)max(d, 1))
static inline uint clnet_quotient(const uint i, const uint inverse) { return (uint)(((ulong)(i + 1) * inverse) >> 32); }
#else
#define TAPS (PH * PW)
#define OVER_TAPS(i) ((i) / TAPS)
#define TAP(i) ((uint)(i) % TAPS)
#define TAP_ROW(tap) ((int)((tap) / PW))
#define TAP_COLUMN(tap) ((int)((tap) % PW))
#define PHASE_PARAMETERS
#define PHASE_ARGUMENTS
#endif
#define B_ALONG_K 0
// (oy0, ox0): where the phase's first tap of the item's pixel was seen, at `from` in the first output channel; w0: that tap.
#define GEMM_PARAMETERS                                                                                          \
  , IN(w), IN(y), const int rows, const int channels, const int w0, const int row0, const int from, const int OH, \
      const int OW, const int oy0, const int ox0 PHASE_PARAMETERS
#define GEMM_ARGUMENTS , w_base, w_offset, y_base, y_offset, CG, OG, w0, row0, from, OH, OW, oy0, ox0 PHASE_ARGUMENTS
#define SEEN_Y(tap) (oy0 - TAP_ROW(tap) * (SH == 1 ? DH : 1))
#define SEEN_X(tap) (ox0 - TAP_COLUMN(tap) * (SW == 1 ? DW : 1))
#define LOAD_SEEN(i) LOAD(y, (uint)(i))
#define SEEN_HEIGHT OH
#define SEEN_WIDTH OW
#define WEIGHT_AT(row, c, tap) (w0 + (((c) * rows + (row)) * KH + TAP_ROW(tap) * SH) * KW + TAP_COLUMN(tap) * SW)

#else
#define TAPS (KH * KW)
#define A_ALONG_K 1
#define B_ALONG_K 1
// All that an item fetches of x in a slice is of one tap, as the columns are numbered: of each SPAN that follow one another each has
// its own (block of channels, tap), the next SPAN have the blocks' next channels, and so on for GEMM_FETCH_B channels of a block.
#define SPAN (TN / GEMM_FETCH_B)
#define CHANNEL_OF(column0, j) (((column0) / GEMM_FETCH_B + (j) % SPAN) / TAPS * GEMM_FETCH_B + (j) / SPAN)
#define TAP_OF(column0, j) (((column0) / GEMM_FETCH_B + (j) % SPAN) % TAPS)
// y0: of the group's first channel in the first image; x0: of the item's first channel there; yn, xn: elements of an image;
// (top, left): of what the item's tap sees, outside of the image; channels: the item's at most.
#define GEMM_PARAMETERS                                                                                             \
  , IN(y), IN(x), const int rows, const int row0, const int channels, const int y0, const int yn, const int x0, const int xn, \
      const int H, const int W, const int pixels, const int OW, const int top, const int left
#define GEMM_ARGUMENTS , y_base, y_offset, x_base, x_offset, OG, row0, CG - channel0, y0, yn, x0, xn, H, W, pixels, OW, top, left
// An item's d is the same in all that it fetches.
#define GEMM_SLICE(k0)                                                                                               \
  const int its_k = (k0) + item % TK, image = (int)((uint)its_k / (uint)pixels), pixel = its_k - image * pixels;                  \
  const int oy = (int)((uint)pixel / (uint)OW), iy = oy * SH - top, ix = (pixel - oy * OW) * SW - left;               \
  const int its_rows = its_k < end ? rows : 0, from_y = y0 + image * yn + pixel;                                         \
  const int its_channels = its_k < end && (uint)iy < (uint)H && (uint)ix < (uint)W ? channels : 0, from_x = x0 + image * xn + iy * W + ix;
#define GEMM_A(i, k, d) (row0 + (i) < its_rows ? LOAD(y, (uint)(from_y + (row0 + (i)) * pixels)) : 0.0f)
#define GEMM_B(k, d, j) ((j) / SPAN < its_channels ? LOAD(x, (uint)(from_x + (j) / SPAN * (H * W))) : 0.0f)
#endif

#if defined(FORWARD) || defined(DATA)
#define SEEN_AT(c, tap) \
  (from + (c) * (SEEN_HEIGHT * SEEN_WIDTH) + (SEEN_Y(tap) - SEEN_Y(0u)) * SEEN_WIDTH + SEEN_X(tap) - SEEN_X(0u))
#if BLOCKED
#define A_ALONG_K 0
#if RAGGED
#define EXISTS(d) && channel0 + (d) < channels
#else
#define EXISTS(d)
#endif
#define GEMM_SLICE(k0)                                                                                             \
  const uint tap = TAP((k0) / TK);                                                                                  \
  const int channel0 = OVER_TAPS((k0) / TK) * TK, sy = SEEN_Y(tap), sx = SEEN_X(tap), its_rows = (k0) < end ? rows : 0; \
  const bool inside = its_rows > 0 && (uint)sy < (uint)SEEN_HEIGHT && (uint)sx < (uint)SEEN_WIDTH;                 \
  const int seen_at = SEEN_AT(channel0, tap), weights_at = WEIGHT_AT(0, channel0, tap) - WEIGHT_AT(0, 0, 0u);
#define GEMM_A(i, k, d) (row0 + (i) < its_rows EXISTS(d) ? LOAD(w, (uint)(weights_at + WEIGHT_AT(row0 + (i), d, 0))) : 0.0f)
#define GEMM_B(k, d, j) (inside EXISTS(d) ? LOAD_SEEN(seen_at + (d) * (SEEN_HEIGHT * SEEN_WIDTH)) : 0.0f)
#else
#define A_ALONG_K 1
#define GEMM_SLICE(k0)
#define CHANNEL(k) ((int)OVER_TAPS((uint)(k)))
#define GEMM_A(i, k, d) ((k) < end && row0 + (i) < rows ? LOAD(w, (uint)WEIGHT_AT(row0 + (i), CHANNEL(k), TAP(k))) : 0.0f)
#define GEMM_B(k, d, j)                                                                                        \
  ((k) < end && (uint)SEEN_Y(TAP(k)) < (uint)SEEN_HEIGHT && (uint)SEEN_X(TAP(k)) < (uint)SEEN_WIDTH            \
       ? LOAD_SEEN(SEEN_AT(CHANNEL(k), TAP(k)))                                                                \
       : 0.0f)
#endif
#endif
#include "gemm_gpu.clh"

#ifdef ADD
#define HELD(x, i) LOAD(x, i)
#else
#define HELD(x, i) 0.0f
#endif

#if defined(FORWARD)
#define OPERANDS IN(w), IN(x), IN(bias), OUT(y), const int has_bias
#elif defined(DATA)
#define OPERANDS IN(w), IN(y), OUT(x)
#else
#define OPERANDS IN(y), IN(x), OUT(w)
#endif

// A group's parts in all phases.
#if defined(DATA) && UNEVEN
#define PHASE_PARAMETERS , const int products
#else
#define PHASE_PARAMETERS
#endif

__attribute__((reqd_work_group_size(GEMM_ITEMS, 1, 1))) kernel void conv2d_gpu(
    OPERANDS, const int N, const int C, const int H, const int W, const int O, const int OH, const int OW, const int CG,
    const int OG, const int PT, const int PL, const int all_k, const int first, const int part, const int parts,
    const int part_stride PHASE_PARAMETERS SLICES_PARAMETER EPILOGUE_PARAMETERS) {
  local float slices[GEMM_LOCAL] __attribute__((aligned(16)));
  const int item = (int)get_local_id(0);
  const int row0 = (int)get_global_id(1) * TM, column0 = (int)get_global_id(0) / GEMM_ITEMS * TN;
#if defined(DATA) && UNEVEN
  // Of each group's phases one after the other those parts that there are; the first has the most taps.
  const int group = (int)get_global_id(2) / products;
  int phase = 0, which = (int)get_global_id(2) % products;
  for (int its_parts; which >= (its_parts = clnet_phase_parts(phase, all_k, first, part, parts)); ++phase) which -= its_parts;
  const int k_end = clnet_phase_k(phase, all_k);
#else
  const int which = (int)get_global_id(2) % parts, k_end = all_k;
#endif
  const int begin = first + which * part, end = min(k_end, begin + part), to = which * part_stride;
  float sum[RM][RN];
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) sum[i][j] = 0.0f;

#if defined(FORWARD)
  const int group = (int)get_global_id(2) / parts, pixels = OH * OW;
  const int w0 = group * OG * CG * TAPS, mine = column0 + item % TN, image = mine / pixels, pixel = mine % pixels;
  // Beyond the last image nothing is seen.
  const int iy0 = image < N ? pixel / OW * SH - PT : -KH * DH, ix0 = pixel % OW * SW - PL;
  const int from = ((image * C + group * CG) * H + iy0) * W + ix0;
  gemm_gpu(slices, begin, end, sum GEMM_ARGUMENTS);
  #pragma unroll
  for (int j = 0; j < RN; ++j) {
    const int column = column0 + GEMM_COLUMN(item, j), to_image = column / pixels;
    if (to_image >= N) continue;
    const int first = Y_PLANE(to_image, 0, O) * pixels + column % pixels;
    #pragma unroll
    for (int i = 0; i < RM; ++i) {
      const int row = row0 + GEMM_ROW(item, i), channel = group * OG + row, at = first + channel * Y_PLANES * pixels;
      if (row >= OG) continue;
      const float value = has_bias ? sum[i][j] + LOAD(bias, channel) : sum[i][j];
      STORE(y, to + at, EPILOGUE(value + HELD(y, to + at), at, channel));
    }
  }
#elif defined(DATA)
#if !UNEVEN
  const int phase = (int)get_global_id(2) / parts % (SH * SW), group = (int)get_global_id(2) / parts / (SH * SW);
#endif
  const int kh0 = phase / SW, kw0 = phase % SW;
  // The phase's pixels: first, first + S, ...
  const int first_y = (kh0 - PT % SH + 2 * SH) % SH, first_x = (kw0 - PL % SW + 2 * SW) % SW;
  const int height = max(0, (H - first_y + SH - 1) / SH), width = max(0, (W - first_x + SW - 1) / SW), pixels = height * width;
  const int w0 = (group * OG * CG * KH + kh0) * KW + kw0, mine = column0 + item % TN;
  const int image = pixels > 0 ? mine / pixels : N, pixel = pixels > 0 ? mine % pixels : 0;
  const int oy0 = image < N ? (first_y + pixel / width * SH + PT - kh0) / SH : -1;
  const int ox0 = image < N ? (first_x + pixel % width * SW + PL - kw0) / SW : 0;
  const int from = ((image * O + group * OG) * OH + oy0) * OW + ox0;
  gemm_gpu(slices, begin, end, sum GEMM_ARGUMENTS);
  if (pixels == 0) return;
  #pragma unroll
  for (int j = 0; j < RN; ++j) {
    const int column = column0 + GEMM_COLUMN(item, j), to_image = column / pixels, to_pixel = column % pixels;
    if (to_image >= N) continue;
    const int first = to_image * C * H * W + (first_y + to_pixel / width * SH) * W + first_x + to_pixel % width * SW;
    #pragma unroll
    for (int i = 0; i < RM; ++i) {
      const int row = row0 + GEMM_ROW(item, i), channel = group * CG + row, at = first + channel * H * W;
      if (row >= CG) continue;
      STORE(x, to + at, EPILOGUE(sum[i][j] + HELD(x, to + at), at, channel));
    }
  }
#else
  const int group = (int)get_global_id(2) / parts, pixels = OH * OW;
  const int y0 = group * OG * pixels, yn = O * pixels, xn = C * H * W;
  const int channel0 = CHANNEL_OF(column0, item / TK), tap = TAP_OF(column0, item / TK);
  const int x0 = (group * CG + channel0) * H * W, top = PT - tap / KW * DH, left = PL - tap % KW * DW;
  gemm_gpu(slices, begin, end, sum GEMM_ARGUMENTS);
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) {
      const int row = row0 + GEMM_ROW(item, i), channel = CHANNEL_OF(column0, GEMM_COLUMN(item, j));
      const int at = to + ((group * OG + row) * CG + channel) * TAPS + TAP_OF(column0, GEMM_COLUMN(item, j));
      if (row < OG && channel < CG) STORE(w, at, sum[i][j] + HELD(w, at));
    }
#endif
}

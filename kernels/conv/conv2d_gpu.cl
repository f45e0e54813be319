// Convolution and its gradients on GPUs as products (gemm_gpu.clh) whose operands are read from the images as they lie. Defined are KH,
// KW, SH, SW, DH, DW and one of
//   FORWARD   y {o, (n, oy, ox)} = w {o, (c, kh, kw)} * x
//   DATA      x {c, (n, iy, ix)} = w' {c, (o, kh, kw)} * y, one product per phase: pixels of the same remainder by the stride, which
//             see every stride-th tap only (then the dilation is 1)
//   WEIGHTS   w {o, (c, kh, kw)} = y {o, (n, oy, ox)} * x'
// each for one group. Parts along k follow one another in the output. ADD: to what it holds.
#include "epilogue.clh"

#if defined(FORWARD)
#define TAPS (KH * KW)
#define A_ALONG_K 1
#define B_ALONG_K 0
// from: of the image's first channel; (iy0, ix0): what the first tap of the item's pixel sees.
#define GEMM_PARAMETERS                                                                                                    \
  , IN(w), IN(x), const int rows, const int all_k, const int w0, const int row0, const int from, const int seen_rows, \
      const int H, const int W, const int iy0, const int ix0
#define GEMM_ARGUMENTS , w_base, w_offset, x_base, x_offset, OG, all_k, w0, row0, from, seen_rows, H, W, iy0, ix0
#define GEMM_A(i, k) (row0 + (i) < rows && (k) < end ? LOAD(w, w0 + (row0 + (i)) * all_k + (k)) : 0.0f)
#define GEMM_B(k, j) seen(x_base, x_offset, from, seen_rows, H, W, iy0, ix0, k, end)

static inline float seen(IN(x), const int from, const int seen_rows, const int H, const int W, const int iy0, const int ix0,
                         const int k, const int end) {
  const uint tap = (uint)k % TAPS;
  const int iy = iy0 + (int)(tap / KW) * DH, ix = ix0 + (int)(tap % KW) * DW;
  return k < end && (uint)iy < (uint)seen_rows && (uint)ix < (uint)W ? LOAD(x, from + ((int)((uint)k / TAPS) * H + iy) * W + ix) : 0.0f;
}

#elif defined(DATA)
// Taps of a phase: the most that one has; those beyond the kernel are skipped.
#define PH ((KH + SH - 1) / SH)
#define PW ((KW + SW - 1) / SW)
#define TAPS (PH * PW)
#define A_ALONG_K 1
#define B_ALONG_K 0
// from: of the image's first output channel; (oy0, ox0): where the phase's first tap (kh0, kw0) of the item's pixel was seen.
#define GEMM_PARAMETERS                                                                                                      \
  , IN(w), IN(y), const int rows, const int w0, const int row0, const int kh0, const int kw0, const int from, \
      const int seen_rows, const int OH, const int OW, const int oy0, const int ox0
#define GEMM_ARGUMENTS , w_base, w_offset, y_base, y_offset, CG, w0, row0, kh0, kw0, from, seen_rows, OH, OW, oy0, ox0
#define GEMM_A(i, k) weight(w_base, w_offset, rows, w0, row0 + (i), kh0, kw0, k, end)
#define GEMM_B(k, j) seen(y_base, y_offset, from, seen_rows, OH, OW, oy0, ox0, k, end)

static inline float weight(IN(w), const int rows, const int w0, const int row, const int kh0, const int kw0, const int k,
                           const int end) {
  const uint tap = (uint)k % TAPS;
  const int kh = kh0 + (int)(tap / PW) * SH, kw = kw0 + (int)(tap % PW) * SW;
  return k < end && row < rows && kh < KH && kw < KW
             ? LOAD(w, w0 + (((int)((uint)k / TAPS) * rows + row) * KH + kh) * KW + kw)
             : 0.0f;
}
static inline float seen(IN(y), const int from, const int seen_rows, const int OH, const int OW, const int oy0, const int ox0,
                         const int k, const int end) {
  const uint tap = (uint)k % TAPS;
  const int oy = oy0 - (int)(tap / PW) * (SH == 1 ? DH : 1), ox = ox0 - (int)(tap % PW) * (SW == 1 ? DW : 1);
  return k < end && (uint)oy < (uint)seen_rows && (uint)ox < (uint)OW ? LOAD(y, from + ((int)((uint)k / TAPS) * OH + oy) * OW + ox) : 0.0f;
}

#else
#define TAPS (KH * KW)
#define A_ALONG_K 1
#define B_ALONG_K 1
// y0, x0: of the group's first channel in the first image; yn, xn: elements of an image.
#define GEMM_PARAMETERS                                                                                                     \
  , IN(y), IN(x), const int rows, const int columns, const int row0, const int column0, const int y0, const int yn,         \
      const int x0, const int xn, const int H, const int W, const int pixels, const int OW, const int PT, const int PL
#define GEMM_ARGUMENTS , y_base, y_offset, x_base, x_offset, OG, CG *TAPS, row0, column0, y0, yn, x0, xn, H, W, pixels, OW, PT, PL
#define GEMM_A(i, k) gradient(y_base, y_offset, rows, row0 + (i), y0, yn, pixels, k, end)
#define GEMM_B(k, j) seen(x_base, x_offset, columns, column0 + (j), x0, xn, H, W, pixels, OW, PT, PL, k, end)

static inline float gradient(IN(y), const int rows, const int row, const int y0, const int yn, const int pixels, const int k,
                             const int end) {
  const uint image = (uint)k / (uint)pixels, pixel = (uint)k % (uint)pixels;
  return k < end && row < rows ? LOAD(y, y0 + (int)image * yn + row * pixels + (int)pixel) : 0.0f;
}
static inline float seen(IN(x), const int columns, const int column, const int x0, const int xn, const int H, const int W,
                         const int pixels, const int OW, const int PT, const int PL, const int k, const int end) {
  const uint image = (uint)k / (uint)pixels, pixel = (uint)k % (uint)pixels, tap = (uint)column % TAPS;
  const int iy = (int)(pixel / (uint)OW) * SH - PT + (int)(tap / KW) * DH;
  const int ix = (int)(pixel % (uint)OW) * SW - PL + (int)(tap % KW) * DW;
  return k < end && column < columns && (uint)iy < (uint)H && (uint)ix < (uint)W
             ? LOAD(x, x0 + (int)image * xn + ((int)((uint)column / TAPS) * H + iy) * W + ix)
             : 0.0f;
}
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

__attribute__((reqd_work_group_size(GEMM_ITEMS, 1, 1))) kernel void conv2d_gpu(
    OPERANDS, const int N, const int C, const int H, const int W, const int O, const int OH, const int OW, const int CG,
    const int OG, const int PT, const int PL, const int all_k, const int first, const int part, const int parts,
    const int part_stride EPILOGUE_PARAMETERS) {
  local float slices[GEMM_LOCAL] __attribute__((aligned(16)));
  const int item = (int)get_local_id(0);
  const int row0 = (int)get_global_id(1) * TM, column0 = (int)get_global_id(0) / GEMM_ITEMS * TN;
  const int which = (int)get_global_id(2) % parts;
  const int begin = first + which * part, end = min(all_k, begin + part), to = which * part_stride;
  float sum[RM][RN];
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) sum[i][j] = 0.0f;

#if defined(FORWARD)
  const int group = (int)get_global_id(2) / parts, pixels = OH * OW;
  const int w0 = group * OG * all_k, mine = column0 + item % TN, image = mine / pixels, pixel = mine % pixels;
  const int from = (image * C + group * CG) * H * W;
  // Beyond the last image nothing is seen.
  const int seen_rows = image < N ? H : 0, iy0 = pixel / OW * SH - PT, ix0 = pixel % OW * SW - PL;
  gemm_gpu(slices, begin, end, sum GEMM_ARGUMENTS);
  #pragma unroll
  for (int j = 0; j < RN; ++j) {
    const int column = column0 + GEMM_COLUMN(item, j), to_image = column / pixels;
    if (to_image >= N) continue;
    const int first = to_image * O * pixels + column % pixels;
    #pragma unroll
    for (int i = 0; i < RM; ++i) {
      const int row = row0 + GEMM_ROW(item, i), channel = group * OG + row, at = first + channel * pixels;
      if (row >= OG) continue;
      const float value = has_bias ? sum[i][j] + LOAD(bias, channel) : sum[i][j];
      STORE(y, to + at, EPILOGUE(value + HELD(y, to + at), at, channel));
    }
  }
#elif defined(DATA)
  const int phase = (int)get_global_id(2) / parts % (SH * SW), group = (int)get_global_id(2) / parts / (SH * SW);
  const int kh0 = phase / SW, kw0 = phase % SW;
  // The phase's pixels: first, first + S, ...
  const int first_y = (kh0 - PT % SH + 2 * SH) % SH, first_x = (kw0 - PL % SW + 2 * SW) % SW;
  const int height = max(0, (H - first_y + SH - 1) / SH), width = max(0, (W - first_x + SW - 1) / SW), pixels = height * width;
  const int w0 = group * OG * CG * KH * KW, mine = column0 + item % TN;
  const int image = pixels > 0 ? mine / pixels : N, pixel = pixels > 0 ? mine % pixels : 0;
  const int from = (image * O + group * OG) * OH * OW;
  const int seen_rows = image < N ? OH : 0;
  const int oy0 = image < N ? (first_y + pixel / width * SH + PT - kh0) / SH : 0;
  const int ox0 = image < N ? (first_x + pixel % width * SW + PL - kw0) / SW : 0;
  // Where the stride is larger than the kernel some phases have no taps.
  gemm_gpu(slices, begin, kh0 < KH && kw0 < KW ? end : begin, sum GEMM_ARGUMENTS);
  if (pixels == 0) return;
  #pragma unroll
  for (int j = 0; j < RN; ++j) {
    const int column = column0 + GEMM_COLUMN(item, j), to_image = column / pixels, to_pixel = column % pixels;
    if (to_image >= N) continue;
    const int place = (first_y + to_pixel / width * SH) * W + first_x + to_pixel % width * SW;
    #pragma unroll
    for (int i = 0; i < RM; ++i) {
      const int row = row0 + GEMM_ROW(item, i), at = to + (to_image * C + group * CG + row) * H * W + place;
      if (row < CG) STORE(x, at, sum[i][j] + HELD(x, at));
    }
  }
#else
  const int group = (int)get_global_id(2) / parts, pixels = OH * OW;
  const int y0 = group * OG * pixels, yn = O * pixels, x0 = group * CG * H * W, xn = C * H * W;
  gemm_gpu(slices, begin, end, sum GEMM_ARGUMENTS);
  #pragma unroll
  for (int i = 0; i < RM; ++i)
    #pragma unroll
    for (int j = 0; j < RN; ++j) {
      const int row = row0 + GEMM_ROW(item, i), column = column0 + GEMM_COLUMN(item, j);
      const int at = to + (group * OG + row) * CG * TAPS + column;
      if (row < OG && column < CG * TAPS) STORE(w, at, sum[i][j] + HELD(w, at));
    }
#endif
}

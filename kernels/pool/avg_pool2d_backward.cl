// The gradient of average pooling: each input element sums its share of the windows that cover it. VW: STRIDE_W * VW elements of a row
// at once where their windows lie inside.
#include "clnet.clh"
#ifdef VW
#include "pool2d_rows.clh"
#endif
#include "epilogue.clh"
#include "avg_pool2d.clh"

kernel void avg_pool2d_backward(IN(g), OUT(dx), const int planes, POOL_PARAMETERS EPILOGUE_PARAMETERS) {
#ifdef ROWS
  const int plane = (int)get_global_id(1), first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, h);
  if (plane >= planes) return;
  for (int ih = first; ih < last; ++ih)
    for (int iw = 0; iw < w; ++iw) {
#else
  const int plane = (int)get_global_id(1), ih = (int)get_global_id(0) / w, iw = REMAINDER((int)get_global_id(0), w);
  if (plane >= planes || ih >= h) return;
  {
#endif
      const int last_h = LAST_H(ih), last_w = LAST_W(iw);
#ifdef VW
      // Of two neighbours that a stride of 2 takes apart, `even` is covered by the window's even columns.
      if (iw >= SEEN_FIRST && iw + STRIDE_W * VW <= SEEN_LAST && (iw + LEFT) % STRIDE_W == 0) {
        VFLOAT even = 0, odd = 0;
        for (int oh = FIRST_H(ih); oh <= last_h; ++oh) {
          const int from = (plane * out_h + oh) * out_w;
          VFLOAT row_even = 0, row_odd = 0;
#pragma unroll
          for (int j = 0; j < KERNEL_W; j += STRIDE_W) row_even += VLOAD(g, from + (iw + LEFT - j) / STRIDE_W);
#if STRIDE_W == 2
#pragma unroll
          for (int j = 1; j < KERNEL_W; j += 2) row_odd += VLOAD(g, from + (iw + 1 + LEFT - j) / 2);
#endif
          const VFLOAT divisor = DIVISOR(START_H(oh), COUNT_H(oh), START_W(INNER_FIRST), COUNT_W(INNER_FIRST));
          even += row_even / divisor;
          odd += row_odd / divisor;
        }
        const int to = (plane * h + ih) * w + iw;
#if STRIDE_W == 1
        VSTORE(dx, to, VEPILOGUE(even, to, 0, 0));
#else
        VFLOAT first_half, second_half;
        first_half.even = even.lo, first_half.odd = odd.lo, second_half.even = even.hi, second_half.odd = odd.hi;
        VSTORE(dx, to, VEPILOGUE(first_half, to, 0, 0));
        VSTORE(dx, to + VW, VEPILOGUE(second_half, to + VW, 0, 0));
#endif
        iw += STRIDE_W * VW - 1;
        continue;
      }
#endif
      float sum = 0;
      for (int oh = FIRST_H(ih); oh <= last_h; ++oh)
        for (int ow = FIRST_W(iw); ow <= last_w; ++ow)
          sum += LOAD(g, (plane * out_h + oh) * out_w + ow) / DIVISOR(START_H(oh), COUNT_H(oh), START_W(ow), COUNT_W(ow));
      const int to = (plane * h + ih) * w + iw;
      STORE(dx, to, EPILOGUE(sum, to, 0));
    }
}

// Max pooling: the largest element of each window, and where in its plane it lies (h * w: the window is all padding). The first of
// equal elements is chosen; NaN wins. VW: that many outputs of a row at once where their windows lie inside. STREAM: rows of at most
// so many are stored past the caches.
#include "clnet.clh"
#include "pool2d.clh"
#ifdef VW
#include "pool2d_rows.clh"
#include "stream.clh"
#if VW == 16
#define LANES (VINT)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#elif VW == 8
#define LANES (VINT)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define LANES (VINT)(0, 1, 2, 3)
#endif
#endif

#ifdef STREAM
#define PUT(to, column, best, at) row_y[column] = best, row_index[column] = at
#define PUT_VECTOR(to, column, best, at) \
  *(any_vector *)(row_y + (column)) = best, CLNET_CAT(vstore, VW)(at, 0, row_index + (column))
#else
#define PUT(to, column, best, at) STORE(y, (to) + (column), best), STORE(index, (to) + (column), at)
#define PUT_VECTOR(to, column, best, at) \
  VSTORE(y, (to) + (column), best), CLNET_CAT(vstore, VW)(at, 0, PTR(index) + (to) + (column))
#endif

kernel void max_pool2d(IN(x), OUT(y), OUT(index), const int planes, POOL_PARAMETERS) {
  const int none = h * w;
#ifdef ROWS
  const int plane = (int)get_global_id(1), first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, out_h);
  if (plane >= planes) return;
  for (int oh = first; oh < last; ++oh) {
    const int to = (plane * out_h + oh) * out_w;
#ifdef STREAM
    float row_y[STREAM];
    int row_index[STREAM];
#endif
    for (int ow = 0; ow < out_w; ++ow) {
#else
  const int position = (int)get_global_id(0), plane = (int)get_global_id(1);
  const int oh = position / out_w, ow = REMAINDER(position, out_w);
  if (plane >= planes || oh >= out_h) return;
  {
    const int to = (plane * out_h + oh) * out_w;
    {
#endif
      const int start_h = START_H(oh), from = plane * h * w;
#ifdef VW
      if (ow >= INNER_FIRST && ow < INNER_LAST) {
        const int column = min(ow, INNER_LAST - VW), start = column * STRIDE_W - LEFT;  // the last vector overlaps another
        VFLOAT best = 0;
        VINT at = none;
        bool empty = true;
#pragma unroll
        for (int i = 0; i < KERNEL_H; ++i) {
          const int ih = start_h + i * DILATION_H;
          if (!IN_EXTENT(ih, h)) continue;
#pragma unroll
          for (int j = 0; j < KERNEL_W; ++j) {
            const int here = ih * w + start;
            const VFLOAT value = COLUMN(from + here, j * DILATION_W);
            const VINT place = LANES * STRIDE_W + (here + j * DILATION_W);
            const VINT take = (value > best) | (value != value) | (VINT)(empty ? -1 : 0);
            best = select(best, value, take);
            at = select(at, place, take);
            empty = false;
          }
        }
        PUT_VECTOR(to, column, empty ? (VFLOAT)(-INFINITY) : best, at);
        ow = column + VW - 1;
        continue;
      }
#endif
      const int start_w = START_W(ow), count_h = COUNT_H(oh), count_w = COUNT_W(ow);
      const int end_row = END_ROW(start_h, count_h), end_column = END_COLUMN(start_w, count_w);
      VALUE(x) best = 0;
      int at = none;
      for (int i = FIRST_ROW(start_h); i < end_row; ++i)
        for (int j = FIRST_COLUMN(start_w); j < end_column; ++j) {
          const int ih = start_h + i * DILATION_H, iw = start_w + j * DILATION_W;
          if (IN_EXTENT(ih, h) && IN_EXTENT(iw, w)) {
            const int here = ih * w + iw;
            const VALUE(x) value = LOAD(x, from + here);
            const bool take = at == none || value > best || value != value;
            best = take ? value : best;
            at = take ? here : at;
          }
        }
      PUT(to, ow, at == none ? -INFINITY : best, at);
    }
#ifdef STREAM
    STREAM_OUT(y, to, row_y, out_w);
    clnet_stream((global float *)(PTR(index) + to), (const float *)row_index, out_w);
#endif
  }
#ifdef STREAM
  STREAMED();
#endif
}

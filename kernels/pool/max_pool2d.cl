// Max pooling: the largest element of each window, and with INDICES where in its plane it lies (h * w: the window is all padding). The
// first of equal elements is chosen; NaN wins.
#include "clnet.clh"
#include "pool2d.clh"

#ifdef INDICES
#define WITH_INDICES(text) text
#else
#define WITH_INDICES(text)
#endif

kernel void max_pool2d(IN(x), OUT(y) WITH_INDICES(COMMA OUT(index)), const int planes, POOL_PARAMETERS) {
  const int none = h * w;
#ifdef ROWS
  const int plane = (int)get_global_id(1), first = (int)get_global_id(0) * rows, last = BLOCK_END(first, rows, out_h);
  if (plane >= planes) return;
  for (int oh = first; oh < last; ++oh) {
    for (int ow = 0; ow < out_w; ++ow) {
#else
  const int position = (int)get_global_id(0), plane = (int)get_global_id(1);
  const int oh = position / out_w, ow = REMAINDER(position, out_w);
  if (plane >= planes || oh >= out_h) return;
  {
    {
#endif
      const int to = (plane * out_h + oh) * out_w + ow, from = plane * h * w;
      const int start_h = START_H(oh), start_w = START_W(ow), count_h = COUNT_H(oh), count_w = COUNT_W(ow);
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
      STORE(y, to, at == none ? -INFINITY : best);
      WITH_INDICES(STORE(index, to, at);)
    }
  }
}

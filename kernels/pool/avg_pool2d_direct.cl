// Average pooling. INCLUDE_PAD: the divisor counts padding, up to the padded input's edge.
#include "clnet.clh"
#include "epilogue.clh"
#include "avg_pool2d.clh"

kernel void avg_pool2d_direct(IN(x), OUT(y), const int planes, POOL_PARAMETERS EPILOGUE_PARAMETERS) {
  const int plane = (int)get_global_id(1), oh = (int)get_global_id(0) / out_w, ow = REMAINDER((int)get_global_id(0), out_w);
  if (plane >= planes || oh >= out_h) return;
  const int start_h = START_H(oh), start_w = START_W(ow), count_h = COUNT_H(oh), count_w = COUNT_W(ow);
  const int end_row = END_ROW(start_h, count_h), end_column = END_COLUMN(start_w, count_w);
  float sum = 0;
  for (int i = FIRST_ROW(start_h); i < end_row; ++i) {
    float row = 0;
    for (int j = FIRST_COLUMN(start_w); j < end_column; ++j) row += LOAD(x, (plane * h + start_h + i) * w + start_w + j);
    sum += row;
  }
  const int to = (plane * out_h + oh) * out_w + ow;
  STORE(y, to, EPILOGUE(sum / DIVISOR(start_h, count_h, start_w, count_w), to, 0));
}

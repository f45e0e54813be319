// The gradient of average pooling: each input element sums its share of the windows that cover it.
#include "clnet.clh"
#include "epilogue.clh"
#include "avg_pool2d.clh"

kernel void avg_pool2d_backward_direct(IN(g), OUT(dx), const int planes, POOL_PARAMETERS EPILOGUE_PARAMETERS) {
  const int plane = (int)get_global_id(1), ih = (int)get_global_id(0) / w, iw = REMAINDER((int)get_global_id(0), w);
  if (plane >= planes || ih >= h) return;
  const int last_h = LAST_H(ih), last_w = LAST_W(iw);
  float sum = 0;
  for (int oh = FIRST_H(ih); oh <= last_h; ++oh)
    for (int ow = FIRST_W(iw); ow <= last_w; ++ow)
      sum += LOAD(g, (plane * out_h + oh) * out_w + ow) / DIVISOR(START_H(oh), COUNT_H(oh), START_W(ow), COUNT_W(ow));
  const int to = (plane * h + ih) * w + iw;
  STORE(dx, to, EPILOGUE(sum, to, 0));
}

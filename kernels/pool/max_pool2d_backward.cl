// The gradient of max pooling. ROWS: a work-item per plane adds each output's gradient where it belongs (f32, or windows that share
// nothing); else one per input element looks through the windows that cover it.
#include "epilogue.clh"
#include "pool2d.clh"

kernel void max_pool2d_backward(IN(index), IN(g), OUT(dx), const int planes, POOL_PARAMETERS EPILOGUE_PARAMETERS) {
#ifdef ROWS
  const int plane = (int)get_global_id(1);
  if (plane >= planes) return;
  const int size = h * w, count = out_h * out_w;
  for (int i = 0; i < size; ++i) STORE(dx, plane * size + i, 0.0f);
  for (int o = 0; o < count; ++o) {
    const int at = LOAD(index, plane * count + o);
    if (at < size) STORE(dx, plane * size + at, LOAD(dx, plane * size + at) + LOAD(g, plane * count + o));
  }
#ifdef EPILOGUE_BODY
  for (int i = plane * size; i < (plane + 1) * size; ++i) STORE(dx, i, EPILOGUE(LOAD(dx, i), i, 0));
#endif
#else
  const int plane = (int)get_global_id(1), here = (int)get_global_id(0), ih = here / w, iw = REMAINDER(here, w);
  if (plane >= planes || ih >= h) return;
  const int last_h = LAST_H(ih), last_w = LAST_W(iw);
  float sum = 0;
  for (int oh = FIRST_H(ih); oh <= last_h; ++oh)
    for (int ow = FIRST_W(iw); ow <= last_w; ++ow) {
      const int o = (plane * out_h + oh) * out_w + ow;
      if (LOAD(index, o) == here) sum += LOAD(g, o);
    }
  STORE(dx, plane * h * w + here, EPILOGUE(sum, plane * h * w + here, 0));
#endif
}
